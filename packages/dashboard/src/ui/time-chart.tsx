import { type PointerEvent, type RefObject, useId, useLayoutEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { clockTime, fullTime, timeZone } from './time.ts'

export interface Series {
  readonly name: string
  /** A color of the theme, such as `var(--chart-1)`. */
  readonly color: string
}

export interface ChartPoint {
  readonly at: Date
  readonly values: readonly number[]
  /** The exact value of each series; the number itself without one. */
  readonly words?: readonly string[]
}

const height = 200
const top = 8
const bottom = 22

interface ChartProps {
  readonly label: string
  readonly points: readonly ChartPoint[]
  readonly series: readonly Series[]
  /** Stacked bars, or a line for each series through the points above zero. */
  readonly kind?: 'bars' | 'lines'
  /** Whether values are counts, so that the axis names only whole numbers. */
  readonly isWhole?: boolean
  /** The words of a value at the axis. */
  readonly axis?: (value: number) => string
}

/** Series over time, from zero. The pointer shows all of them at one time; a table says the same to a screen reader. */
export function TimeChart({ label, points, series, kind = 'bars', isWhole = false, axis = axisWords }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [hover, setHover] = useState<number>()
  const id = useId()
  const stacks = points.map(({ values }) =>
    values.map((value, index) => (kind === 'lines' ? value : values.slice(0, index + 1).reduce((a, b) => a + b, 0))),
  )
  const most = niceCeiling(Math.max(0, ...stacks.flat()), { isWhole })
  const marks = [0, most / 2, most].map((value) => ({ value, text: axis(value) }))
  const left = 12 + 7 * Math.max(...marks.map(({ text }) => text.length))
  const slot = (width - left - 4) / Math.max(1, points.length)
  const x = (index: number) => left + (index + 0.5) * slot
  const y = (value: number) => top + (1 - value / most) * (height - top - bottom)
  const barWidth = Math.min(28, Math.max(1.5, slot - Math.min(4, slot * 0.3)))
  const move = ({ clientX, currentTarget }: PointerEvent<SVGSVGElement>) => {
    const place = (clientX - currentTarget.getBoundingClientRect().left - left) / slot
    setHover(Math.min(points.length - 1, Math.max(0, Math.floor(place))))
  }
  const at = hover === undefined ? undefined : points[hover]
  return (
    <div ref={frame} className="relative overflow-x-clip">
      <svg
        width={width}
        height={height}
        role="img"
        aria-labelledby={id}
        onPointerMove={move}
        onPointerLeave={() => setHover(undefined)}
        className="block"
      >
        <title id={id}>{label}</title>
        {marks.map(({ value, text }) => (
          <g key={value}>
            <line x1={left} x2={width} y1={y(value)} y2={y(value)} stroke="var(--line)" />
            <text x={left - 8} y={y(value) + 4} textAnchor="end" className="num fill-ink-3 text-xs">
              {text}
            </text>
          </g>
        ))}
        {hover !== undefined && (
          <rect x={x(hover) - slot / 2} y={top} width={slot} height={height - top - bottom} fill="var(--well)" />
        )}
        {kind === 'lines' &&
          series.map(({ name, color }, place) => (
            <Line
              key={name}
              color={color}
              points={stacks.flatMap((stack, index) =>
                (stack[place] ?? 0) > 0 ? [[x(index), y(stack[place] ?? 0)] as const] : [],
              )}
            />
          ))}
        {(kind === 'bars' ? stacks : []).map((stack, index) =>
          stack.map((end, place) => {
            const begin = place === 0 ? 0 : (stack[place - 1] ?? 0)
            const { name, color } = series[place] ?? { name: String(place), color: 'var(--chart-1)' }
            return end === begin ? null : (
              <rect
                key={`${points[index]?.at.getTime()}-${name}`}
                x={x(index) - barWidth / 2}
                y={y(end)}
                width={barWidth}
                height={Math.max(1, y(begin) - y(end))}
                rx={Math.min(2, barWidth / 3)}
                fill={color}
              />
            )
          }),
        )}
        {ticks(points).map(({ index, text, anchor }) => (
          <text key={index} x={x(index)} y={height - 5} textAnchor={anchor} className="num fill-ink-3 text-xs">
            {text}
          </text>
        ))}
      </svg>
      {at !== undefined && hover !== undefined && (
        <div
          className="pointer-events-none absolute top-2 z-10 rounded-control border border-line bg-surface px-2.5 py-1.5 text-sm shadow-float"
          style={x(hover) > width / 2 ? { right: width - x(hover) + 10 } : { left: x(hover) + 10 }}
        >
          <p className="num whitespace-nowrap text-ink-3">
            {fullTime(at.at)} ({timeZone})
          </p>
          {series.map(({ name, color }, place) => (
            <p key={name} className="num flex items-center gap-1.5">
              <span className="size-2 rounded-full" style={{ background: color }} /> {name}
              <span className="ml-auto pl-4 font-medium">{wordsAt(at, place)}</span>
            </p>
          ))}
        </div>
      )}
      <table className="sr-only">
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points
            .filter(({ values }) => values.some((value) => value > 0))
            .map((point) => (
              <tr key={point.at.getTime()}>
                <th scope="row">{fullTime(point.at)}</th>
                {series.map(({ name }, place) => (
                  <td key={name}>{wordsAt(point, place)}</td>
                ))}
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  )
}

/**
 * The width of an element in each picture that the browser paints. A change is rendered before that picture: rendered after it, the chart would be
 * narrower or wider than its card for a moment. An element that is hidden has no width and keeps the last one.
 */
function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(640)
  useLayoutEffect(() => {
    if (element.current === null) return
    const { current } = element
    const measure = () => {
      if (current.clientWidth > 0) setWidth(Math.max(200, current.clientWidth))
    }
    measure()
    const observer = new ResizeObserver(() => flushSync(measure))
    observer.observe(current)
    return () => observer.disconnect()
  }, [element])
  return width
}

function wordsAt({ values, words }: ChartPoint, place: number): string {
  return words?.[place] ?? (values[place] ?? 0).toLocaleString('en-US')
}

function axisWords(value: number): string {
  return value.toLocaleString('en-US', { maximumSignificantDigits: 6 })
}

function Line({ points, color }: { points: readonly (readonly [x: number, y: number])[]; color: string }) {
  return (
    <g>
      <path
        d={points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x},${y}`).join('')}
        fill="none"
        stroke={color}
        strokeWidth={1.5}
        strokeLinejoin="round"
      />
      {points.map(([x, y]) => (
        <circle key={x} cx={x} cy={y} r={points.length === 1 ? 3 : 2} fill={color} />
      ))}
    </g>
  )
}

/** The names of the series with their colors. */
export function Legend({ series }: { series: readonly Series[] }) {
  return (
    <span className="flex flex-wrap gap-x-3 gap-y-1 text-sm text-ink-2">
      {series.map(({ name, color }) => (
        <span key={name} className="flex min-w-0 items-center gap-1.5">
          <span className="size-2 shrink-0 rounded-full" style={{ background: color }} aria-hidden />
          <span className="truncate">{name}</span>
        </span>
      ))}
    </span>
  )
}

/** The next round, even maximum of the axis, so that its middle is a round number too. */
function niceCeiling(most: number, { isWhole }: { readonly isWhole: boolean }): number {
  if (most <= 0) return isWhole ? 2 : 1
  const power = 10 ** Math.floor(Math.log10(most))
  // Half of a count is a count too.
  const steps = isWhole && power < 10 ? [2, 4, 6, 8, 10] : [1, 1.2, 1.6, 2, 3, 4, 5, 6, 8, 10]
  const step = steps.find((one) => one * power >= most) ?? 10
  return step * power
}

const dayText = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

/** The beginning, the middle and the end of the axis, as clock or as date. */
function ticks(points: readonly ChartPoint[]) {
  const last = points.length - 1
  const first = points[0]
  const end = points[last]
  if (first === undefined || end === undefined || last < 2) return []
  const isLong = end.at.getTime() - first.at.getTime() > 36 * 3_600_000
  const places = [
    { index: 0, anchor: 'start' },
    { index: Math.floor(last / 2), anchor: 'middle' },
    { index: last, anchor: 'end' },
  ] as const
  return places.map(({ index, anchor }) => {
    const at = points[index]?.at ?? first.at
    return { index, anchor, text: isLong ? dayText.format(at) : clockTime(at).slice(0, 5) }
  })
}
