import type { AuditRecord } from '@purser/sdk'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { FilterX, ScrollText, ShieldCheck, X } from 'lucide-react'
import { useCallback, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { type ListingState, useListing } from '../../api/listing.ts'
import { Button, buttonClasses } from '../../ui/button.tsx'
import { Select, TextInput } from '../../ui/form.tsx'
import { count, sentenceCase } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import type { Column } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { Actor } from './actor.tsx'
import { areaOf, auditKey, matches } from './audit-words.ts'
import { ChainDialog } from './chain-dialog.tsx'
import { AuditSheet } from './record-details.tsx'
import { type AuditSearch, actorKinds, readAuditSearch } from './search.ts'

const route = getRouteApi('/shell/audit-log')

/** Who changed what. The API has no filters for it: those of the page look at the records that were read. */
export function AuditPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open, ...filters } = route.useSearch()
  const [isVerifying, setVerifying] = useState(false)
  const listing = useListing(auditKey, (query, options) => purser.organisations.auditLog(query, options).page())
  const isFiltered = Object.keys(filters).length > 0
  const rows = listing.rows.filter((record) => matches(record, filters))
  const go = useCallback(
    (change: Record<string, string | undefined>) =>
      void navigate({
        to: '/audit-log',
        search: (old) => readAuditSearch({ ...old, ...change }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
  const show = useCallback(({ id }: AuditRecord) => go({ open: id }), [go])
  // A filter that matches nothing must not read a log of any length by itself.
  const shown = isFiltered ? { ...listing, rows, hasMore: false } : listing
  return (
    <Page
      title="Audit log"
      state="Who changed what. Each record carries the hash of the one before."
      action={
        <Button onClick={() => setVerifying(true)}>
          <ShieldCheck aria-hidden /> Verify the chain
        </Button>
      }
      wide
    >
      <Filters filters={filters} areas={areasOf(listing.rows, filters.area)} isFiltered={isFiltered} onSet={go} />
      <ListCard
        label="Audit log"
        listing={shown}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={show}
        openKey={open}
        empty={<NoRecords isFiltered={isFiltered} />}
      />
      {isFiltered && listing.hasMore && <FurtherBack listing={listing} matching={rows.length} />}
      <AuditSheet record={listing.rows.find(({ id }) => id === open)} onClose={() => go({ open: undefined })} />
      {isVerifying && <ChainDialog onClose={() => setVerifying(false)} />}
    </Page>
  )
}

const rowKey = ({ id }: AuditRecord) => id

const columns: readonly Column<AuditRecord>[] = [
  {
    id: 'act',
    head: 'Act',
    cell: ({ action }) => <span className="font-mono text-sm font-medium">{action}</span>,
  },
  { id: 'who', head: 'Who', width: 'w-60', cell: (record) => <Actor record={record} /> },
  {
    id: 'target',
    head: 'Target',
    width: 'w-44',
    cell: ({ target }) => (target === null ? <span className="text-ink-3">none</span> : <Id value={target} />),
  },
  {
    id: 'environment',
    head: 'Environment',
    width: 'w-32',
    from: 'lg',
    cell: ({ environment }) => (
      <span className="text-ink-2">{environment === null ? 'Both' : sentenceCase(environment)}</span>
    ),
  },
  { id: 'when', head: 'When', align: 'right', width: 'w-36', cell: ({ createdAt }) => <Time at={createdAt} /> },
]

const compact = (record: AuditRecord) => (
  <>
    <span className="truncate font-mono text-sm font-medium">{record.action}</span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <Actor record={record} />
      <Time at={record.createdAt} />
    </span>
  </>
)

/** What the records that were read are about, and what the address names. */
function areasOf(rows: readonly AuditRecord[], chosen: string | undefined): readonly string[] {
  const found = new Set(rows.map(areaOf))
  if (chosen !== undefined) found.add(chosen)
  return [...found].sort()
}

interface FiltersProps {
  readonly filters: AuditSearch
  readonly areas: readonly string[]
  readonly isFiltered: boolean
  readonly onSet: (change: Record<string, string | undefined>) => void
}

function Filters({ filters, areas, isFiltered, onSet }: FiltersProps) {
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2">
      <span className="w-full sm:w-72">
        <TextInput
          aria-label="Search the audit log"
          placeholder="Act, target, request or actor"
          value={filters.q ?? ''}
          onChange={({ target }) => onSet({ q: target.value })}
        />
      </span>
      <Select aria-label="About" value={filters.area ?? ''} onChange={({ target }) => onSet({ area: target.value })}>
        <option value="">About anything</option>
        {areas.map((area) => (
          <option key={area} value={area}>
            {sentenceCase(area)}
          </option>
        ))}
      </Select>
      <Select aria-label="Who" value={filters.actor ?? ''} onChange={({ target }) => onSet({ actor: target.value })}>
        <option value="">By anybody</option>
        {Object.entries(actorKinds).map(([kind, label]) => (
          <option key={kind} value={kind}>
            {label}
          </option>
        ))}
      </Select>
      {isFiltered && (
        <Button tone="ghost" onClick={() => onSet({ q: undefined, area: undefined, actor: undefined })}>
          <X aria-hidden /> Clear
        </Button>
      )}
    </div>
  )
}

function FurtherBack({ listing, matching }: { listing: ListingState<AuditRecord>; matching: number }) {
  return (
    <p className="mt-3 flex flex-wrap items-center justify-center gap-3 text-ink-2">
      {count(matching, 'match', 'matches')} in the newest {count(listing.rows.length, 'record')}.
      <Button small onClick={listing.more}>
        Look further back
      </Button>
    </p>
  )
}

function NoRecords({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered)
    return (
      <Empty icon={<ScrollText />} title="No records">
        Every organization begins with a record. Verify the chain, or ask the operator of this service.
      </Empty>
    )
  return (
    <Empty
      icon={<FilterX />}
      title="No record matches these filters"
      action={
        <Link to="/audit-log" search={{}} className={buttonClasses()}>
          Clear the filters
        </Link>
      }
    />
  )
}
