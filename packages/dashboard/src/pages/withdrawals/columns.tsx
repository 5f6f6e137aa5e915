import type { Withdrawal } from '@purser/sdk'
import { createdColumn } from '../../ui/created-column.tsx'
import { Network } from '../../ui/network.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, Time } from '../../ui/values.tsx'
import { FromName } from '../transfers/from-wallet.tsx'
import { WithdrawalBadge } from './withdrawal-state.tsx'

export const withdrawalColumns: readonly Column<Withdrawal>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-35',
    cell: ({ id, amount, token }) => (
      <RowLink to={`/withdrawals/${id}`}>
        <Amount value={amount} token={token} className="ml-auto font-medium" />
      </RowLink>
    ),
  },
  { id: 'state', head: 'State', width: 'w-39', cell: (row) => <WithdrawalBadge {...row} /> },
  { id: 'from', head: 'From', width: 'w-39', cell: ({ fromWalletId }) => <FromName walletId={fromWalletId} /> },
  { id: 'payout', head: 'Bank receives', align: 'right', width: 'w-35', cell: (row) => <Payout row={row} /> },
  {
    id: 'reference',
    head: 'Reference',
    cell: ({ reference }) => reference ?? <span className="text-ink-3">none</span>,
  },
  { id: 'chain', head: 'Network', width: 'w-32', from: 'xl', cell: ({ chain }) => <Network chain={chain} /> },
  createdColumn(),
]

export function Payout({ row: { payoutAmount, currency } }: { row: Withdrawal }) {
  if (payoutAmount === null) return <span className="text-ink-3">not known yet</span>
  return <Amount value={payoutAmount} token={currency} />
}

export function CompactWithdrawal({ row }: { row: Withdrawal }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <Amount value={row.amount} token={row.token} className="font-medium" />
        <WithdrawalBadge {...row} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <span className="min-w-0 truncate">
          {row.payoutAmount === null ? (row.reference ?? `to a bank in ${row.currency}`) : <Payout row={row} />}
        </span>
        <Time at={row.createdAt} />
      </span>
    </>
  )
}
