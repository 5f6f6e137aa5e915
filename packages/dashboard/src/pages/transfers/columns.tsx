import type { Transfer } from '@purser/sdk'
import { createdColumn } from '../../ui/created-column.tsx'
import { Network } from '../../ui/network.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { FromName } from './from-wallet.tsx'
import { TransferBadge } from './transfer-state.tsx'

export const transferColumns: readonly Column<Transfer>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-35',
    cell: ({ id, amount, fromToken }) => (
      <RowLink to={`/transfers/${id}`}>
        <Amount value={amount} token={fromToken} className="ml-auto font-medium" />
      </RowLink>
    ),
  },
  { id: 'state', head: 'State', width: 'w-39', cell: (row) => <TransferBadge {...row} /> },
  { id: 'from', head: 'From', width: 'w-39', cell: ({ fromWalletId }) => <FromName walletId={fromWalletId} /> },
  {
    id: 'to',
    head: 'To',
    width: 'w-42',
    cell: ({ toAddress, toChain }) => <OnChain value={toAddress} network={toChain} kind="address" />,
  },
  { id: 'chain', head: 'Network', width: 'w-35', from: 'xl', cell: (row) => <Networks {...row} /> },
  {
    id: 'reference',
    head: 'Reference',
    cell: ({ reference }) => reference ?? <span className="text-ink-3">none</span>,
  },
  createdColumn(),
]

function Networks({ fromChain, toChain }: Pick<Transfer, 'fromChain' | 'toChain'>) {
  if (fromChain === toChain) return <Network chain={fromChain} />
  return (
    <>
      <Network chain={fromChain} /> → <Network chain={toChain} />
    </>
  )
}

export function CompactTransfer({ row }: { row: Transfer }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <Amount value={row.amount} token={row.fromToken} className="font-medium" />
        <TransferBadge {...row} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <span className="inline-flex items-center gap-1">
          to <Id value={row.toAddress} />
        </span>
        {row.reference !== null && <span className="min-w-0 flex-1 truncate">{row.reference}</span>}
        <Time at={row.createdAt} />
      </span>
    </>
  )
}
