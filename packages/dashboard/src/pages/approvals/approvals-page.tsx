import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { CircleCheck, History } from 'lucide-react'
import { useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page, Skeleton } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Amount, Time } from '../../ui/values.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { ApprovalDetail } from './approval-page.tsx'
import { ApprovalBadge, kindWord, requester } from './approval-state.tsx'
import { type Approval, approvalsKey, shownWaitingMax, waitingQuery } from './queries.ts'

const route = getRouteApi('/shell/approvals')

/** The approvals that wait for a decision, and those that were decided. */
export function ApprovalsPage() {
  const { view } = route.useSearch()
  const waiting = useQuery(waitingQuery(usePurser()))
  return (
    <Page title="Approvals" state={summaryOf(waiting.data?.items)}>
      <div className="mb-3">
        <Tabs
          label="Approvals"
          to="/approvals"
          tabs={[
            { label: 'Waiting', search: {}, isChosen: view === undefined },
            { label: 'All requests', search: { view: 'history' }, isChosen: view === 'history' },
          ]}
        />
      </div>
      {view === 'history' ? (
        <AllRequests />
      ) : waiting.data === undefined ? (
        waiting.error === null ? (
          <Skeleton lines={9} />
        ) : (
          <ErrorBlock error={waiting.error} onRetry={() => waiting.refetch()} />
        )
      ) : waiting.data.items.length === 0 ? (
        <div className="rounded-card border border-line bg-surface">
          <Empty icon={<CircleCheck />} title="Nothing needs your attention">
            A transfer, payment or withdrawal appears here when its amount needs an approval. Set that amount in the
            spend policy of the wallet.
          </Empty>
        </div>
      ) : (
        <div className="grid items-start gap-4 xl:grid-cols-2">
          {waiting.data.items.slice(0, shownWaitingMax).map((approval) => (
            <ApprovalCard key={approval.id} approval={approval} />
          ))}
        </div>
      )}
    </Page>
  )
}

function summaryOf(waiting: readonly Approval[] | undefined): string {
  if (waiting === undefined || waiting.length === 0) return 'Transfers, payments and withdrawals that need an approval.'
  if (waiting.length > shownWaitingMax)
    return `More than ${shownWaitingMax} requests wait for an approval. The newest are shown.`
  return `${count(waiting.length, 'request')} ${waiting.length === 1 ? 'waits' : 'wait'} for an approval.`
}

function AllRequests() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open } = route.useSearch()
  const listing = useListing([...approvalsKey, 'list'], (query, options) =>
    purser.approvals.list(query, options).page(),
  )
  const show = useCallback(
    (id: string | undefined) =>
      void navigate({
        to: '/approvals',
        search: { view: 'history', ...(id !== undefined && { open: id }) },
        resetScroll: false,
      }),
    [navigate],
  )
  const openRow = useCallback(({ id }: Approval) => show(id), [show])
  return (
    <>
      <ListCard
        label="Approvals"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={openRow}
        openKey={open}
        empty={
          <Empty icon={<History />} title="No approval requests yet">
            Every request stays listed here, with the person who decided it and the reason.
          </Empty>
        }
      />
      <RecordSheet
        title="Approval"
        open={open !== undefined}
        onClose={() => show(undefined)}
        page={open === undefined ? undefined : `/approvals/${open}`}
      >
        {open !== undefined && <ApprovalDetail approvalId={open} />}
      </RecordSheet>
    </>
  )
}

const rowKey = ({ id }: Approval) => id

const columns: readonly Column<Approval>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-35',
    cell: ({ id, amount, token }) => (
      <RowLink to={`/approvals/${id}`}>
        <Amount value={amount} token={token} className="ml-auto font-medium" />
      </RowLink>
    ),
  },
  { id: 'state', head: 'State', width: 'w-30', cell: ({ status }) => <ApprovalBadge status={status} /> },
  { id: 'kind', head: 'Kind', width: 'w-28', cell: kindWord },
  {
    id: 'by',
    head: 'Requested by',
    from: 'lg',
    cell: ({ requestedBy }) => <span className="truncate">{requester(requestedBy)}</span>,
  },
  {
    id: 'for',
    head: 'For',
    cell: ({ note }) => note ?? <span className="text-ink-3">no reason given</span>,
  },
  createdColumn('Requested'),
]

const compact = (row: Approval) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <Amount value={row.amount} token={row.token} className="font-medium" />
      <ApprovalBadge status={row.status} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <span className="truncate">{requester(row.requestedBy)}</span>
      <Time at={row.createdAt} />
    </span>
  </>
)
