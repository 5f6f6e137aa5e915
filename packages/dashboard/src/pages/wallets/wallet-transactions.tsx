import type { WalletTransaction } from '@purser/sdk'
import { ArrowDownLeft, ArrowUpRight, PauseCircle } from 'lucide-react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty } from '../../ui/page.tsx'
import { StateBadge, Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, OnChain, Time } from '../../ui/values.tsx'
import { type AnyWallet, isManaged, walletsKey } from './queries.ts'
import { isOnHold, transactionStanding } from './wallet-state.tsx'

/** The deposits and outgoing transactions of the wallet, newest first; optionally only those on hold among the loaded ones. */
export function WalletTransactions({ wallet, onHoldOnly }: { wallet: AnyWallet; onHoldOnly: boolean }) {
  const purser = usePurser()
  const { id } = wallet
  const listing = useListing([...walletsKey, 'transactions', id, onHoldOnly], (page, options) => {
    const query = { ...page, ...(onHoldOnly && { direction: 'in' as const }) }
    return isManaged(wallet)
      ? purser.wallets.master.transactions(id, query, options).page()
      : purser.wallets.byo.transactions(id, query, options).page()
  })
  const rows = onHoldOnly ? listing.rows.filter(isOnHold) : listing.rows
  return (
    <ListCard
      label={onHoldOnly ? 'Deposits on hold' : 'Deposits and transfers'}
      listing={{ ...listing, rows }}
      columns={columns}
      rowKey={rowKey}
      compact={compact}
      empty={
        onHoldOnly ? (
          <Empty icon={<PauseCircle />} title="Nothing is on hold">
            {listing.hasMore
              ? `None of the newest ${listing.rows.length} deposits is on hold.`
              : 'A deposit is on hold while its sender is screened, and for as long as screening names the sender as sanctioned.'}
          </Empty>
        ) : (
          <Empty icon={<ArrowDownLeft />} title="No deposits or transfers yet">
            Deposits and transfers appear here when their block is on the chain.
          </Empty>
        )
      }
    />
  )
}

const rowKey = ({ id }: WalletTransaction) => id

const columns: readonly Column<WalletTransaction>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-44',
    cell: (row) => <Moved row={row} />,
  },
  { id: 'state', head: 'State', width: 'w-40', cell: (row) => <TransactionBadge row={row} /> },
  { id: 'other', head: 'From or to', cell: (row) => <OtherParty row={row} /> },
  { id: 'kind', head: 'Kind', width: 'w-32', from: 'lg', cell: ({ kind }) => <Tag>{kindWords[kind]}</Tag> },
  {
    id: 'tx',
    head: 'Transaction',
    width: 'w-48',
    from: 'xl',
    cell: ({ txHash, chain }) => <OnChain value={txHash} network={chain} kind="tx" />,
  },
  {
    id: 'created',
    head: 'Seen',
    align: 'right',
    width: 'w-36',
    cell: ({ createdAt }) => (
      <span className="text-ink-2">
        <Time at={createdAt} />
      </span>
    ),
  },
]

const kindWords: Readonly<Record<WalletTransaction['kind'], string>> = {
  transfer: 'Transfer',
  internal: 'Internal',
  unsupported: 'Unsupported',
  fee: 'Fee',
  forward: 'Forwarded',
  held: 'Kept back',
}

function Moved({ row: { direction, amount, tokenSymbol, rawAmount } }: { row: WalletTransaction }) {
  const isIn = direction === 'in'
  return (
    <span className="inline-flex items-center gap-1.5">
      {isIn ? (
        <ArrowDownLeft className="size-3.5 text-settled" role="img" aria-label="In" />
      ) : (
        <ArrowUpRight className="size-3.5 text-ink-3" role="img" aria-label="Out" />
      )}
      <Amount value={amount} token={tokenSymbol} raw={rawAmount} className="font-medium" />
    </span>
  )
}

function TransactionBadge({ row }: { row: WalletTransaction }) {
  const { state, word } = transactionStanding(row)
  return <StateBadge state={state}>{word}</StateBadge>
}

function OtherParty({ row: { direction, from, to, chain } }: { row: WalletTransaction }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      <span className="text-ink-3">{direction === 'in' ? 'from' : 'to'}</span>
      <OnChain value={direction === 'in' ? from : to} network={chain} kind="address" />
    </span>
  )
}

const compact = (row: WalletTransaction) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <Moved row={row} />
      <TransactionBadge row={row} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <OtherParty row={row} />
      <Time at={row.createdAt} />
    </span>
  </>
)
