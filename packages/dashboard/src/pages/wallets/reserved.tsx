import type { MasterWallet, Purser, Sweep, Transfer, Withdrawal } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Lock } from 'lucide-react'
import { type ReactNode, useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty } from '../../ui/page.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, OnChain, Time } from '../../ui/values.tsx'
import { TransferBadge } from '../transfers/transfer-state.tsx'
import { WithdrawalBadge } from '../withdrawals/withdrawal-state.tsx'
import { type Holder, walletsKey } from './queries.ts'
import { SweepChildBadge } from './sweep-state.tsx'
import { walletPath } from './wallet-path.ts'

interface ReservedProps {
  readonly holder: Holder
  /** The wallet itself, or the one that a child address was derived from. */
  readonly wallet: MasterWallet
}

/** A movement of money that has not ended, and so reserves its amount. */
interface Movement {
  readonly id: string
  readonly kind: 'Transfer' | 'Withdrawal' | 'Sweep'
  readonly amount: string
  readonly token: string
  readonly badge: ReactNode
  readonly to: ReactNode
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
  readonly createdAt: string
}

/** Each list is short: a movement that is under way ends within minutes, or waits for one of the few open approvals. */
const rowsMax = 500
/** Between two readings: not every step of a movement has an event. */
const pollMs = 5_000

/** The transfers, withdrawals and sweeps that reserve money of a wallet or child address, newest first. */
export function Reserved({ holder, wallet }: ReservedProps) {
  const purser = usePurser()
  const navigate = useNavigate()
  const found = useQuery({
    queryKey: [...walletsKey, 'reserved', holder.id],
    queryFn: ({ signal }) => readMovements(purser, { holder, wallet }, signal),
    refetchInterval: ({ state }) => ((state.data?.length ?? 0) > 0 ? pollMs : false),
  })
  useRefreshOn(['approval.'], [...walletsKey, 'reserved', holder.id])
  const open = useCallback(({ path, search = {} }: Movement) => void navigate({ to: path, search }), [navigate])
  return (
    <ListCard
      label="What reserves money"
      listing={{
        rows: found.data ?? [],
        isPending: found.isPending,
        error: found.data === undefined ? found.error : null,
        hasMore: false,
        more: () => {},
        retry: () => void found.refetch(),
      }}
      columns={columns}
      rowKey={rowKey}
      compact={compact}
      onOpen={open}
      empty={
        <Empty icon={<Lock />} title="Nothing is reserved">
          A transfer, a withdrawal, a sweep or a payment of a 402 reserves its amount and its gas until it has ended.
        </Empty>
      }
    />
  )
}

async function readMovements(
  purser: Purser,
  { holder, wallet }: ReservedProps,
  signal: AbortSignal,
): Promise<readonly Movement[]> {
  const [transfers, withdrawals, sweeps] = await Promise.all([
    purser.transfers
      .list({ fromWalletId: holder.id, status: 'pending', limit: rowsMax }, { signal })
      .toArray({ limit: rowsMax }),
    purser.withdrawals.list({ status: 'pending_conversion', limit: rowsMax }, { signal }).toArray({ limit: rowsMax }),
    holder.masterWalletId === undefined ? [] : readOpenSweeps(purser, wallet.id, signal),
  ])
  const movements = [
    ...transfers.map(ofTransfer),
    ...withdrawals.filter(({ fromWalletId }) => fromWalletId === holder.id).map(ofWithdrawal),
    ...sweeps.flatMap((sweep) => ofSweep(sweep, holder, wallet)),
  ]
  return movements.toSorted((one, other) => other.createdAt.localeCompare(one.createdAt))
}

async function readOpenSweeps(purser: Purser, walletId: string, signal: AbortSignal): Promise<readonly Sweep[]> {
  const newest = (await purser.wallets.sweeps.list(walletId, { limit: 100 }, { signal }).page()).items
  const isOpen = newest.filter(({ status }) => status === 'sweeping')
  return Promise.all(isOpen.map(({ id }) => purser.wallets.sweeps.get(walletId, id, { signal })))
}

function ofTransfer(transfer: Transfer): Movement {
  const { id, amount, fromToken, toAddress, toChain, createdAt } = transfer
  return {
    id,
    kind: 'Transfer',
    amount,
    token: fromToken,
    badge: <TransferBadge {...transfer} />,
    to: <OnChain value={toAddress} network={toChain} kind="address" />,
    path: `/transfers/${id}`,
    createdAt,
  }
}

function ofWithdrawal(withdrawal: Withdrawal): Movement {
  const { id, amount, token, currency, createdAt } = withdrawal
  return {
    id,
    kind: 'Withdrawal',
    amount,
    token,
    badge: <WithdrawalBadge {...withdrawal} />,
    to: `A bank account in ${currency}`,
    path: `/withdrawals/${id}`,
    createdAt,
  }
}

function ofSweep(sweep: Sweep, { id }: Holder, wallet: MasterWallet): readonly Movement[] {
  return sweep.children
    .filter(({ childAddressId, status }) => childAddressId === id && (status === 'pending' || status === 'sent'))
    .map((child) => ({
      id: sweep.id,
      kind: 'Sweep',
      amount: child.amount,
      token: sweep.token,
      badge: <SweepChildBadge status={child.status} />,
      to: <OnChain value={wallet.address} network={wallet.chain} kind="address" />,
      path: walletPath(wallet.id),
      search: { view: 'sweeps', open: sweep.id },
      createdAt: sweep.createdAt,
    }))
}

const rowKey = ({ id }: Movement) => id

const columns: readonly Column<Movement>[] = [
  {
    id: 'amount',
    head: 'Amount',
    align: 'right',
    width: 'w-39',
    cell: ({ amount, token }) => <Amount value={amount} token={token} className="font-medium" />,
  },
  { id: 'state', head: 'State', width: 'w-39', cell: ({ badge }) => badge },
  { id: 'to', head: 'To', cell: ({ to }) => to },
  {
    id: 'kind',
    head: 'Kind',
    width: 'w-28',
    cell: (row) => <MovementLink row={row} />,
  },
  createdColumn('Requested'),
]

function MovementLink({ row: { kind, path, search } }: { row: Movement }) {
  return <RowLink to={search === undefined ? path : `${path}?${new URLSearchParams(search)}`}>{kind}</RowLink>
}

const compact = (row: Movement) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <Amount value={row.amount} token={row.token} className="font-medium" />
      {row.badge}
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <MovementLink row={row} />
      <Time at={row.createdAt} />
    </span>
  </>
)
