import type { Transfer } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { classes } from '../../ui/classes.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Timeline } from '../../ui/timeline.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { FromWallet } from './from-wallet.tsx'
import { routeWords, TransferBadge, whereTransferIs } from './transfer-state.tsx'
import { transferSteps } from './transfer-steps.tsx'

/** Between two readings of a transfer that is on its way: not every step has an event. */
const pollMs = 2_000

/** Shows where the money of one transfer is, step by step. */
export function TransferDetail({ transferId, wide = false }: { transferId: string; wide?: boolean }) {
  const purser = usePurser()
  const transfer = useQuery({
    queryKey: ['transfers', 'one', transferId],
    queryFn: ({ signal }) => purser.transfers.get(transferId, { signal }),
    refetchInterval: ({ state }) => (state.data?.status === 'pending' ? pollMs : false),
  })
  useRefreshOn(['transfer.', 'approval.'], ['transfers', 'one', transferId])
  const { data, error } = transfer
  if (data === undefined)
    return error === null ? <Skeleton lines={9} /> : <ErrorBlock error={error} onRetry={() => transfer.refetch()} />
  return (
    <div className="flex flex-col gap-5">
      <header className="flex flex-col gap-2">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="text-2xl font-semibold tracking-tight">
            <Amount value={data.amount} token={data.fromToken} />
          </h1>
          <TransferBadge {...data} />
        </div>
        <p className="text-ink-2">{whereTransferIs(data)}</p>
      </header>
      <div className={classes('grid items-start gap-5', wide && 'lg:grid-cols-main-side')}>
        <Card title="What happened">
          <Timeline steps={transferSteps(data)} />
        </Card>
        <Card title="Details">
          <TransferFacts transfer={data} />
        </Card>
      </div>
    </div>
  )
}

function TransferFacts({ transfer }: { transfer: Transfer }) {
  const { id, fromWalletId, fromChain, toAddress, toChain, toAmount, toToken, feeAmount, feeToken } = transfer
  return (
    <Facts>
      <Fact name="Transfer">
        <Id value={id} />
      </Fact>
      <Fact name="From">
        <FromWallet walletId={fromWalletId} chain={fromChain} />
      </Fact>
      <Fact name="To">
        <OnChain value={toAddress} network={toChain} kind="address" />{' '}
        <span className="text-ink-3">
          on <Network chain={toChain} />
        </span>
      </Fact>
      <Fact name="Recipient receives">
        <Amount value={toAmount} token={transfer.receivedToken ?? toToken} />
      </Fact>
      <Fact name="Fee">
        {transfer.txHash === null ? (
          <span className="text-ink-3">not known yet</span>
        ) : (
          <Amount value={feeAmount} token={feeToken} />
        )}
      </Fact>
      <Fact name="Route">{routeWords(transfer)}</Fact>
      {transfer.reference !== null && <Fact name="Reference">{transfer.reference}</Fact>}
      {transfer.resource !== null && (
        <Fact name="Paid for">
          <span className="font-mono text-sm break-all">{transfer.resource}</span>
        </Fact>
      )}
      <Fact name="Created">
        <Time at={transfer.createdAt} full />
      </Fact>
    </Facts>
  )
}
