import type { WalletTransaction } from '@purser/sdk'
import { ArrowDownLeft, ArrowUpRight, PauseCircle } from 'lucide-react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty } from '../../ui/page.tsx'
import { StateBadge, Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, OnChain, Time } from '../../ui/values.tsx'
import { type Holder, isChildId, isKeptHere, walletsKey } from './queries.ts'
import { transactionStanding } from './wallet-state.tsx'

/** The rows that are shown: all, the deposits on hold, or what was swept to the master wallet. */
type TransactionView = 'all' | 'on-hold' | 'swept'

interface WalletTransactionsProps {
  readonly holder: Holder
  readonly view: TransactionView
}

const looks = {
  all: { label: 'Deposits and transfers', query: {}, isShown: () => true },
  'on-hold': { label: 'Deposits on hold', query: { onHold: 'true' }, isShown: () => true },
  swept: {
    label: 'Sweeps',
    query: { direction: 'out' },
    isShown: ({ kind }: WalletTransaction) => kind === 'internal',
  },
} as const

/** The deposits and outgoing transactions of a wallet or child address, newest first. Of what a child address sent, sweeps are shown. */
export function WalletTransactions({ holder, view }: WalletTransactionsProps) {
  const purser = usePurser()
  const { id, masterWalletId } = holder
  const { label, query: narrower, isShown } = looks[view]
  const listing = useListing([...walletsKey, 'transactions', id, view], (page, options) => {
    const query = { ...page, ...narrower }
    const { children, master, byo } = purser.wallets
    if (masterWalletId !== undefined) return children.transactions(masterWalletId, id, query, options).page()
    return (isKeptHere(holder) ? master : byo).transactions(id, query, options).page()
  })
  return (
    <ListCard
      label={label}
      listing={{ ...listing, rows: listing.rows.filter(isShown) }}
      columns={columns}
      rowKey={rowKey}
      compact={compact}
      empty={<NoTransactions view={view} />}
    />
  )
}

function NoTransactions({ view }: { view: TransactionView }) {
  if (view === 'all')
    return (
      <Empty icon={<ArrowDownLeft />} title="No deposits or transfers yet">
        Deposits and transfers appear here when their block is on the chain.
      </Empty>
    )
  if (view === 'swept')
    return (
      <Empty icon={<ArrowUpRight />} title="Nothing was swept yet">
        A sweep moves the balance of this child address to its master wallet.
      </Empty>
    )
  return (
    <Empty icon={<PauseCircle />} title="Nothing is on hold">
      A deposit is on hold while its sender is screened, and for as long as screening names the sender as sanctioned.
    </Empty>
  )
}

const rowKey = ({ id }: WalletTransaction) => id

const columns: readonly Column<WalletTransaction>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-39',
    cell: (row) => <Moved row={row} />,
  },
  { id: 'state', head: 'State', width: 'w-35', cell: (row) => <TransactionBadge row={row} /> },
  { id: 'other', head: 'From or to', cell: (row) => <OtherParty row={row} /> },
  { id: 'kind', head: 'Kind', width: 'w-28', from: 'lg', cell: (row) => <Tag>{kindWord(row)}</Tag> },
  {
    id: 'tx',
    head: 'Transaction',
    width: 'w-42',
    from: 'xl',
    cell: ({ txHash, chain }) => <OnChain value={txHash} network={chain} kind="tx" />,
  },
  createdColumn('Seen'),
]

const kindWords: Readonly<Record<WalletTransaction['kind'], string>> = {
  transfer: 'Transfer',
  internal: 'Internal',
  unsupported: 'Unsupported',
  fee: 'Fee',
  forward: 'Forwarded',
  held: 'Kept back',
}

/** A child address sends to a wallet of the organisation by being swept. */
function kindWord({ kind, direction, walletId }: WalletTransaction): string {
  return kind === 'internal' && direction === 'out' && isChildId(walletId) ? 'Sweep' : kindWords[kind]
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
