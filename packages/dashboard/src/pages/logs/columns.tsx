import type { LoggedRequest } from '@purser/sdk'
import { TriangleAlert } from 'lucide-react'
import { createdColumn } from '../../ui/created-column.tsx'
import { duration } from '../../ui/format.ts'
import { RowLink } from '../../ui/row-link.tsx'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { ActorName } from '../audit/actor.tsx'

export const logColumns: readonly Column<LoggedRequest>[] = [
  { id: 'status', head: 'Status', width: 'w-21', cell: ({ status }) => <Status status={status} /> },
  { id: 'request', head: 'Request', cell: (row) => <RequestCell row={row} /> },
  {
    id: 'code',
    head: 'Problem',
    width: 'w-60',
    from: 'lg',
    cell: ({ code }) => <span className="truncate font-mono text-sm text-ink-2">{code}</span>,
  },
  { id: 'caller', head: 'Caller', width: 'w-39', from: 'xl', cell: (row) => <RequestCaller row={row} /> },
  {
    id: 'duration',
    head: 'Duration',
    align: 'right',
    width: 'w-25',
    from: 'lg',
    cell: ({ durationMs }) => <span className="num text-ink-2">{duration(durationMs)}</span>,
  },
  createdColumn('When'),
]

/** The status in the color of its class. */
export function Status({ status }: { status: number }) {
  const state = stateOf(status)
  return (
    <StateBadge state={state} {...(state === 'held' && { icon: TriangleAlert })}>
      {status}
    </StateBadge>
  )
}

function stateOf(status: number): MoneyState {
  if (status >= 500) return 'failed'
  if (status >= 400) return 'held'
  return 'settled'
}

/** The key or the person that made the request. */
export function RequestCaller({ row: { apiKeyId, accountId } }: { row: LoggedRequest }) {
  const id = apiKeyId ?? accountId
  return id === null ? <span className="text-ink-3">unknown</span> : <ActorName id={id} />
}

function RequestCell({ row: { id, method, route } }: { row: LoggedRequest }) {
  return (
    <RowLink to={`/logs?open=${id}`}>
      <span className="font-mono text-xs text-ink-3">{method}</span>
      <span className="truncate font-mono text-sm">{route}</span>
    </RowLink>
  )
}

export function CompactRequest({ row }: { row: LoggedRequest }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <RequestCell row={row} />
        <Status status={row.status} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <span className="truncate font-mono">{row.code ?? duration(row.durationMs)}</span>
        <Time at={row.createdAt} />
      </span>
    </>
  )
}
