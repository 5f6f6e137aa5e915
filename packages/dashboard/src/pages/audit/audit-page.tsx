import type { AuditRecord } from '@purser/sdk'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { FilterX, ScrollText, ShieldCheck } from 'lucide-react'
import { useCallback, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { Button, buttonClasses } from '../../ui/button.tsx'
import { sentenceCase } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import type { Column } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { Actor } from './actor.tsx'
import { AuditFilters } from './audit-filters.tsx'
import { auditKey, auditQuery } from './audit-words.ts'
import { ChainDialog } from './chain-dialog.tsx'
import { AuditSheet } from './record-details.tsx'
import { readAuditSearch } from './search.ts'

const route = getRouteApi('/shell/audit-log')

/** The changes and who made them, newest first. Each filter is in the URL, and the API applies it. */
export function AuditPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open, ...filters } = route.useSearch()
  const [isVerifying, setVerifying] = useState(false)
  const [openedAt] = useState(() => new Date())
  const query = auditQuery(filters, openedAt)
  const listing = useListing([...auditKey, 'list', query], (page, options) =>
    purser.organisations.auditLog({ ...page, ...query }, options).page(),
  )
  const isFiltered = Object.keys(filters).length > 0
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
  return (
    <Page
      title="Audit log"
      state="Who changed what. Each record contains the hash of the previous one."
      action={
        <Button onClick={() => setVerifying(true)}>
          <ShieldCheck aria-hidden /> Verify the chain
        </Button>
      }
      wide
    >
      <AuditFilters filters={filters} onSet={go} />
      <ListCard
        label="Audit log"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={show}
        openKey={open}
        empty={<NoRecords isFiltered={isFiltered} />}
      />
      <AuditSheet record={listing.rows.find(({ id }) => id === open)} onClose={() => go({ open: undefined })} />
      {isVerifying && <ChainDialog onClose={() => setVerifying(false)} />}
    </Page>
  )
}

const rowKey = ({ id }: AuditRecord) => id

const columns: readonly Column<AuditRecord>[] = [
  {
    id: 'action',
    head: 'Action',
    cell: ({ action }) => <span className="font-mono text-sm font-medium">{action}</span>,
  },
  { id: 'actor', head: 'Actor', width: 'w-52', cell: (record) => <Actor record={record} /> },
  {
    id: 'target',
    head: 'Target',
    width: 'w-39',
    cell: ({ target }) => (target === null ? <span className="text-ink-3">none</span> : <Id value={target} />),
  },
  {
    id: 'environment',
    head: 'Environment',
    width: 'w-28',
    from: 'lg',
    cell: ({ environment }) => (
      <span className="text-ink-2">{environment === null ? 'Both' : sentenceCase(environment)}</span>
    ),
  },
  { id: 'when', head: 'When', align: 'right', width: 'w-32', cell: ({ createdAt }) => <Time at={createdAt} /> },
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

function NoRecords({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered)
    return (
      <Empty icon={<ScrollText />} title="No records">
        Every organisation begins with a record. Verify the chain, or ask the operator of this service.
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
