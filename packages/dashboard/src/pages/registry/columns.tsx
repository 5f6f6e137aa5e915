import type { RegistryRoute } from '@purser/sdk'
import { count } from '../../ui/format.ts'
import { RowLink } from '../../ui/row-link.tsx'
import { Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, Time } from '../../ui/values.tsx'
import { protocolNames } from '../payments/columns.tsx'

export const routeColumns: readonly Column<RegistryRoute>[] = [
  { id: 'route', head: 'Route', cell: (row) => <RouteCell row={row} /> },
  { id: 'host', head: 'Host', width: 'w-50', from: 'lg', cell: ({ host }) => <span title={host}>{host}</span> },
  {
    id: 'price',
    head: 'Price',
    align: 'right',
    width: 'w-32',
    cell: ({ amount }) => <Amount value={amount} token="USD" className="font-medium" />,
  },
  { id: 'demand', head: 'Reports', align: 'right', width: 'w-25', cell: (row) => <Demand row={row} /> },
  { id: 'protocols', head: 'Protocols', width: 'w-32', from: 'xl', cell: (row) => <Protocols row={row} /> },
  { id: 'visible', head: 'Listed', width: 'w-25', from: 'lg', cell: (row) => <Visibility row={row} /> },
  {
    id: 'seen',
    head: 'Last reported',
    align: 'right',
    width: 'w-32',
    from: 'lg',
    cell: ({ lastSeenAt }) => (
      <span className="text-ink-2">
        <Time at={lastSeenAt} />
      </span>
    ),
  },
]

export function Protocols({ row: { protocols } }: { row: RegistryRoute }) {
  return (
    <span className="inline-flex gap-1">
      {protocols.map((protocol) => (
        <Tag key={protocol}>{protocolNames[protocol]}</Tag>
      ))}
    </span>
  )
}

export function Visibility({ row: { isPublic } }: { row: RegistryRoute }) {
  return <Tag>{isPublic ? 'Public' : 'Private'}</Tag>
}

function Demand({ row: { snapshotCount } }: { row: RegistryRoute }) {
  return <span className="num">{snapshotCount.toLocaleString('en-US')}</span>
}

function RouteCell({ row: { id, method, routePattern } }: { row: RegistryRoute }) {
  return (
    <RowLink to={`/routes?open=${id}`}>
      <span className="font-mono text-xs text-ink-3">{method}</span>
      <span className="truncate">{routePattern}</span>
    </RowLink>
  )
}

export function CompactRoute({ row }: { row: RegistryRoute }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <RouteCell row={row} />
        <span className="shrink-0">
          <Amount value={row.amount} token="USD" className="font-medium" />
        </span>
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <span className="truncate">{row.host}</span>
        <span className="shrink-0">{count(row.snapshotCount, 'report')}</span>
      </span>
    </>
  )
}
