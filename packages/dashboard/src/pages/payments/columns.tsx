import type { PaymentLog } from '@purser/sdk'
import { createdColumn } from '../../ui/created-column.tsx'
import { Network } from '../../ui/network.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import { StateBadge, Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, OnChain, Time } from '../../ui/values.tsx'
import { isSimulated, paymentState } from './payment-state.ts'

export const protocolNames = { x402: 'x402', mpp: 'MPP' } as const

export const paymentColumns: readonly Column<PaymentLog>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-35',
    cell: ({ amount, token }) => <Amount value={amount} token={token} className="font-medium" />,
  },
  { id: 'state', head: 'State', width: 'w-28', cell: ({ status }) => <PaymentBadge status={status} /> },
  { id: 'route', head: 'Route', cell: (row) => <RouteCell row={row} /> },
  {
    id: 'protocol',
    head: 'Protocol',
    width: 'w-21',
    from: 'lg',
    cell: ({ protocol }) => <Tag>{protocolNames[protocol]}</Tag>,
  },
  { id: 'chain', head: 'Network', width: 'w-30', from: 'xl', cell: ({ chain }) => <Network chain={chain} /> },
  {
    id: 'payer',
    head: 'Payer',
    width: 'w-42',
    from: 'lg',
    cell: (row) => <Payer payment={row} />,
  },
  createdColumn('Received'),
]

export function PaymentBadge({ status }: Pick<PaymentLog, 'status'>) {
  const { state, word } = paymentState(status)
  return <StateBadge state={state}>{word}</StateBadge>
}

/** The payer's address, or that there is none. */
export function Payer({ payment }: { payment: Pick<PaymentLog, 'chain' | 'payer' | 'status' | 'txHash'> }) {
  const { chain, payer } = payment
  if (payer !== null) return <OnChain value={payer} network={chain} kind="address" />
  return <span className="text-ink-3">{isSimulated(payment) ? 'simulated' : 'unknown'}</span>
}

/** The resource that was paid for. It links to the payment, for a keyboard and for a new tab. */
function RouteCell({ row: { paymentId, method, route } }: { row: PaymentLog }) {
  return (
    <RowLink to={`/payments/${paymentId}`}>
      {method !== null && <span className="font-mono text-xs text-ink-3">{method}</span>}
      <span className="truncate">{route === null ? 'No route' : shortRoute(route)}</span>
    </RowLink>
  )
}

/** Without the scheme: `api.example.com/forecast`. */
export function shortRoute(route: string): string {
  return route.replace(/^https?:\/\//, '')
}

/** A payment in two lines, for narrow screens: its amount and its route. */
export function CompactPayment({ row }: { row: PaymentLog }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <Amount value={row.amount} token={row.token} className="font-medium" />
        <PaymentBadge status={row.status} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <RouteCell row={row} />
        {isSimulated(row) && <span className="shrink-0 text-ink-3">simulated</span>}
        <span className="shrink-0">
          <Time at={row.createdAt} />
        </span>
      </span>
    </>
  )
}
