import type { MasterWallet, Sweep, SweepSummary } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Merge } from 'lucide-react'
import { useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count, sentenceCase } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { AutoSweepButton } from './auto-sweep.tsx'
import { walletsKey } from './queries.ts'
import { SweepButton } from './sweep-dialog.tsx'
import { SweepBadge, SweepChildBadge } from './sweep-state.tsx'
import { walletPath } from './wallet-path.ts'

/** No event reports the steps of a sweep. */
const pollMs = 2_000

function sweepsKey(walletId: string) {
  return [...walletsKey, 'sweeps', walletId] as const
}

/** The sweeps of the wallet, newest first. The address of the page names the one that is open. */
export function WalletSweeps({ wallet, openId }: { wallet: MasterWallet; openId: string | undefined }) {
  const purser = usePurser()
  const navigate = useNavigate()
  const listing = useListing([...sweepsKey(wallet.id), 'list'], (query, options) =>
    purser.wallets.sweeps.list(wallet.id, query, options).page(),
  )
  const show = useCallback(
    (open: string | undefined) =>
      void navigate({
        to: '/wallets/$walletId',
        params: { walletId: wallet.id },
        search: { view: 'sweeps', ...(open !== undefined && { open }) },
        resetScroll: false,
      }),
    [navigate, wallet.id],
  )
  const openRow = useCallback(({ id }: SweepSummary) => show(id), [show])
  return (
    <>
      {listing.rows.length > 0 && (
        <div className="flex flex-wrap justify-end gap-2">
          <AutoSweepButton wallet={wallet} />
          <SweepButton wallet={wallet} />
        </div>
      )}
      <ListCard
        label="Sweeps"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={openRow}
        openKey={openId}
        empty={
          <Empty
            icon={<Merge />}
            title="No sweeps yet"
            action={
              <>
                <SweepButton wallet={wallet} />
                <AutoSweepButton wallet={wallet} />
              </>
            }
          >
            A sweep moves the balances of the child addresses to this wallet. The children need no gas.
          </Empty>
        }
      />
      <RecordSheet title="Sweep" open={openId !== undefined} onClose={() => show(undefined)}>
        {openId !== undefined && <SweepDetail walletId={wallet.id} sweepId={openId} />}
      </RecordSheet>
    </>
  )
}

const rowKey = ({ id }: SweepSummary) => id
const triggerWords = { request: 'A request', automatic: 'The schedule' } as const

const columns: readonly Column<SweepSummary>[] = [
  {
    id: 'swept',
    head: 'Swept',
    align: 'right',
    width: 'w-39',
    cell: ({ sweptAmount, token }) => <Amount value={sweptAmount} token={token} className="font-medium" />,
  },
  { id: 'state', head: 'State', width: 'w-35', cell: (sweep) => <SweepBadge sweep={sweep} /> },
  { id: 'children', head: 'From', cell: ({ childCount }) => count(childCount, 'child address', 'child addresses') },
  {
    id: 'amount',
    head: 'To sweep',
    align: 'right',
    width: 'w-39',
    from: 'lg',
    cell: ({ amount, token }) => <Amount value={amount} token={token} />,
  },
  {
    id: 'trigger',
    head: 'Started by',
    width: 'w-28',
    from: 'lg',
    cell: ({ trigger }) => <span className="text-ink-2">{triggerWords[trigger]}</span>,
  },
  { id: 'id', head: 'Sweep', width: 'w-39', from: 'xl', cell: ({ id }) => <Id value={id} /> },
  createdColumn(),
]

const compact = (sweep: SweepSummary) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <Amount value={sweep.sweptAmount} token={sweep.token} className="font-medium" />
      <SweepBadge sweep={sweep} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      {count(sweep.childCount, 'child address', 'child addresses')}
      <Time at={sweep.createdAt} />
    </span>
  </>
)

function SweepDetail({ walletId, sweepId }: { walletId: string; sweepId: string }) {
  const purser = usePurser()
  const { data, error, refetch } = useQuery({
    queryKey: [...sweepsKey(walletId), 'one', sweepId],
    queryFn: ({ signal }) => purser.wallets.sweeps.get(walletId, sweepId, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === 'sweeping' ? pollMs : false),
  })
  if (data === undefined)
    return error === null ? <Skeleton lines={6} /> : <ErrorBlock error={error} onRetry={() => refetch()} />
  return (
    <div className="flex flex-col gap-5">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="text-2xl font-semibold tracking-tight">
          <Amount value={data.sweptAmount} token={data.token} />
        </h1>
        <SweepBadge sweep={data} />
      </header>
      <Facts>
        <Fact name="Sweep">
          <Id value={data.id} />
        </Fact>
        <Fact name="To sweep">
          <Amount value={data.amount} token={data.token} />
        </Fact>
        <Fact name="Started by">{triggerWords[data.trigger]}</Fact>
        <Fact name="Created">
          <Time at={data.createdAt} full />
        </Fact>
        {data.completedAt !== null && (
          <Fact name="Ended">
            <Time at={data.completedAt} full />
          </Fact>
        )}
      </Facts>
      {data.isPartial && (
        <p className="text-ink-2">Some child addresses did not fit into this sweep. The next sweep takes them.</p>
      )}
      <SweptChildren sweep={data} />
    </div>
  )
}

function SweptChildren({ sweep: { children, token, chain } }: { sweep: Sweep }) {
  if (children.length === 0) return <p className="text-ink-2">No child address had enough of {token}.</p>
  return (
    <section>
      <h2 className="mb-2 font-medium">{count(children.length, 'child address', 'child addresses')}</h2>
      <ul className="rounded-card border border-line">
        {children.map(({ childAddressId, amount, status, txHash, reason }) => (
          <li key={childAddressId} className="border-b border-line px-4 py-2.5 last:border-b-0">
            <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
              <Id value={childAddressId} to={walletPath(childAddressId)} />
              <span className="flex items-center gap-3">
                <Amount value={amount} token={token} />
                <SweepChildBadge status={status} />
              </span>
            </div>
            {reason !== null && <p className="text-sm text-ink-2">{sentenceCase(reason)}. The money is still there.</p>}
            {txHash !== null && (
              <p className="flex items-center gap-1.5 text-sm text-ink-3">
                Transaction <OnChain value={txHash} network={chain} kind="tx" />
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}
