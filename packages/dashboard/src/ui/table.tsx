import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { memo, type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { classes } from './classes.ts'
import { useKeys } from './keys.ts'

export interface Column<Row> {
  readonly id: string
  readonly head: ReactNode
  readonly cell: (row: Row) => ReactNode
  readonly align?: 'right'
  /** A width of Tailwind's; the columns without one share the rest. */
  readonly width?: string
  /** Shown where the table is wide enough for it: as wide as in a window of 1,100 px (`lg`) or 1,400 px (`xl`) beside the open rail. */
  readonly from?: 'lg' | 'xl'
}

export interface DataTableProps<Row> {
  /** The name of the table for screen readers. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  /** Two lines in place of the columns, on a phone. */
  readonly compact: (row: Row) => ReactNode
  readonly onOpen?: ((row: Row) => void) | undefined
  /** Fetches what its page needs, before it is opened. */
  readonly onHover?: ((row: Row) => void) | undefined
  /** The row that is open beside the table. */
  readonly openKey?: string | undefined
  /** New rows, to be highlighted. */
  readonly arrivedKeys?: ReadonlySet<string> | undefined
  readonly hasMore?: boolean
  readonly onMore?: (() => void) | undefined
}

const rowHeight = 44
const compactHeight = 64
/** Rows from the end at which the next page is fetched. */
const moreRowsAhead = 20

/** A table of any length: only the rows in view are on the page. `j` and `k` move, Enter opens. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { rows, columns, rowKey, onOpen, hasMore = false, onMore } = props
  const isCompact = useCompact()
  const body = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const [active, setActive] = useState(-1)
  const height = isCompact ? compactHeight : rowHeight
  // The table's position changes with the content above it.
  useLayoutEffect(() => {
    const measure = () => setTop(body.current === null ? 0 : body.current.getBoundingClientRect().top + window.scrollY)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(document.body)
    return () => observer.disconnect()
  }, [])
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: useCallback(() => height, [height]),
    overscan: 12,
    scrollMargin: top,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows of another height are measured anew
  useEffect(() => virtual.measure(), [virtual, height])
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (hasMore && last >= rows.length - moreRowsAhead) onMore?.()
  }, [hasMore, last, rows.length, onMore])
  const move = (by: number) => {
    const next = Math.min(rows.length - 1, Math.max(0, active + by))
    setActive(next)
    virtual.scrollToIndex(next, { align: 'auto' })
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    Enter: () => {
      const row = rows[active]
      if (row !== undefined) onOpen?.(row)
    },
  })
  const shown = items.flatMap(({ index }) => {
    const row = rows[index]
    if (row === undefined) return []
    const key = rowKey(row)
    const state = {
      index,
      top: index * height,
      isActive: index === active,
      isOpen: key === props.openKey,
      hasArrived: props.arrivedKeys?.has(key) === true,
    }
    return [{ key, row, ...state }]
  })
  if (isCompact)
    return (
      <div ref={body}>
        <ul className="relative" aria-label={props.label} style={{ height: virtual.getTotalSize() }}>
          {shown.map(({ key, row, ...state }) => (
            <CompactRow key={key} row={row} {...state} {...pick(props)} />
          ))}
        </ul>
      </div>
    )
  return (
    <div ref={body} className="@container">
      <table className="block text-left" aria-label={props.label} aria-rowcount={hasMore ? -1 : rows.length + 1}>
        <thead className="sticky top-(--bar) z-10 block border-b border-line bg-surface">
          <tr className="flex h-9 items-center" aria-rowindex={1}>
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                className={classes(
                  'truncate px-3 text-sm font-medium text-ink-3 first:pl-4 last:pr-4',
                  ...cellClasses(column),
                )}
              >
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="relative block" style={{ height: virtual.getTotalSize() }}>
          {shown.map(({ key, row, ...state }) => (
            <WideRow key={key} row={row} columns={columns} {...state} {...pick(props)} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

type RowActs<Row> = Pick<DataTableProps<Row>, 'onOpen' | 'onHover' | 'compact'>

function pick<Row>({ onOpen, onHover, compact }: DataTableProps<Row>): RowActs<Row> {
  return { onOpen, onHover, compact }
}

interface RowProps<Row> extends RowActs<Row> {
  readonly row: Row
  readonly index: number
  /** Pixels from the start of the rows. */
  readonly top: number
  readonly isActive: boolean
  readonly isOpen: boolean
  readonly hasArrived: boolean
}

/** Rows are positioned absolutely with layout containment, so that adding or removing one never moves another. */
const placed = 'absolute inset-x-0 border-b border-line last:border-b-0 contain-size contain-layout contain-paint'

function rowTone({ isActive, isOpen, hasArrived, onOpen }: RowProps<never>): string {
  return classes(
    hasArrived && 'arrived',
    onOpen !== undefined && 'cursor-pointer',
    isOpen ? 'bg-accent-soft' : isActive ? 'bg-well' : 'hover:bg-well/60',
    isActive && 'inset-shadow-active',
  )
}

function WideRowOf<Row>(props: RowProps<Row> & { columns: readonly Column<Row>[] }) {
  const { row, index, top, columns, onOpen, onHover } = props
  return (
    <tr
      aria-rowindex={index + 2}
      style={{ top }}
      className={classes(placed, 'flex h-11 items-center', rowTone(props as unknown as RowProps<never>))}
      onClick={() => onOpen?.(row)}
      onPointerEnter={() => onHover?.(row)}
    >
      {columns.map((column) => (
        <td
          key={column.id}
          className={classes('truncate px-3 first:pl-4 last:pr-4 *:align-middle', ...cellClasses(column))}
        >
          {column.cell(row)}
        </td>
      ))}
    </tr>
  )
}
const WideRow = memo(WideRowOf) as typeof WideRowOf

function CompactRowOf<Row>(props: RowProps<Row>) {
  const { row, top, compact, onOpen } = props
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard opens it by the link in it
    <li
      style={{ top }}
      className={classes(
        placed,
        'flex h-16 flex-col justify-center gap-1 px-4',
        rowTone(props as unknown as RowProps<never>),
      )}
      onClick={() => onOpen?.(row)}
    >
      {compact(row)}
    </li>
  )
}
const CompactRow = memo(CompactRowOf) as typeof CompactRowOf

function cellClasses<Row>({ align, width, from }: Column<Row>): readonly (string | false)[] {
  return [
    align === 'right' && 'text-right',
    width === undefined ? 'min-w-0 flex-1' : `${width} shrink-0`,
    from === 'lg' ? 'hidden @table:block' : from === 'xl' ? 'hidden @table-wide:block' : '',
  ]
}

const compactQuery = '(max-width: 699px)'

function useCompact(): boolean {
  const [isCompact, setCompact] = useState(() => matchMedia(compactQuery).matches)
  useEffect(() => {
    const query = matchMedia(compactQuery)
    const change = () => setCompact(query.matches)
    query.addEventListener('change', change)
    return () => query.removeEventListener('change', change)
  }, [])
  return isCompact
}
