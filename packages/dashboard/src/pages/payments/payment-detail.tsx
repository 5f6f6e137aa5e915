import type { Payment } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { RotateCcw, SquareTerminal } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button } from '../../ui/button.tsx'
import { classes } from '../../ui/classes.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Timeline } from '../../ui/timeline.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { ActorName } from '../audit/actor.tsx'
import { WalletLink } from '../transfers/from-wallet.tsx'
import { Payer, PaymentBadge, protocolNames, shortRoute } from './columns.tsx'
import { useEventSteps } from './payment-events.tsx'
import { whereItIs } from './payment-state.ts'
import { paymentSteps, refundSteps, withEvents } from './payment-steps.tsx'
import { paymentQuery, paymentsKey } from './queries.ts'
import { RefundDialog } from './refund-dialog.tsx'

/** One payment: where its money is and why, followed by its steps and data. */
export function PaymentDetail({ paymentId, wide = false }: { paymentId: string; wide?: boolean }) {
  const purser = usePurser()
  const payment = useQuery(paymentQuery(purser, paymentId))
  useRefreshOn(['payment.'], [...paymentsKey, 'one', paymentId])
  if (payment.error !== null) return <ErrorBlock error={payment.error} onRetry={() => payment.refetch()} />
  if (payment.data === undefined) return <Skeleton lines={9} />
  const { data } = payment
  return (
    <div className="flex flex-col gap-5">
      <Head payment={data} />
      <div className={classes('grid items-start gap-5', wide && 'lg:grid-cols-main-side')}>
        <Card title="What happened">
          <History payment={data} />
        </Card>
        <Card title="Details">
          <PaymentFacts payment={data} />
        </Card>
      </div>
    </div>
  )
}

function History({ payment }: { payment: Payment }) {
  const purser = usePurser()
  const { id, refundedAmount } = payment
  const refunds = useQuery({
    queryKey: [...paymentsKey, 'one', id, 'refunds'],
    queryFn: ({ signal }) => purser.payments.refunds.list(id, {}, { signal }).page(),
    enabled: refundedAmount !== '0',
  })
  const events = useEventSteps(payment)
  return <Timeline steps={withEvents([...paymentSteps(payment), ...refundSteps(refunds.data?.items ?? [])], events)} />
}

function Head({ payment }: { payment: Payment }) {
  const mayRefund = useMay('member')
  const [isRefunding, setRefunding] = useState(false)
  const isRefundable =
    payment.status === 'settled' && payment.txHash !== null && payment.refundedAmount !== payment.amount
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-col gap-1.5">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="text-2xl font-semibold tracking-tight">
            <Amount value={payment.amount} token={payment.token} raw={payment.rawAmount} />
          </h1>
          <PaymentBadge status={payment.status} />
        </div>
        <p className="text-ink-2">{whereItIs(payment)}</p>
        {payment.route !== null && (
          <p className="font-mono text-sm break-all text-ink-2">
            {payment.method} {shortRoute(payment.route)}
          </p>
        )}
      </div>
      <div className="flex flex-wrap gap-2">
        {mayRefund && isRefundable && (
          <Button onClick={() => setRefunding(true)}>
            <RotateCcw aria-hidden /> Refund
          </Button>
        )}
        <Button
          onClick={() =>
            navigator.clipboard.writeText(curlOf(payment)).then(() => toastDone('curl command copied'), toastFailed)
          }
        >
          <SquareTerminal aria-hidden /> Copy as curl
        </Button>
      </div>
      {isRefunding && <RefundDialog payment={payment} onClose={() => setRefunding(false)} />}
    </header>
  )
}

/** The curl command that reads this payment. The key comes from `PURSER_API_KEY`. */
function curlOf({ id }: Payment): string {
  return `curl -s ${location.origin}/payments/${id} -H "Authorization: Bearer $PURSER_API_KEY"`
}

function PaymentFacts({ payment }: { payment: Payment }) {
  const { chain, payTo, walletId, vaultId, sessionId, description } = payment
  return (
    <Facts>
      <Fact name="Payment">
        <Id value={payment.id} />
      </Fact>
      <Fact name="Payer">
        <Payer payment={payment} />
      </Fact>
      <Fact name="Paid to">
        <OnChain value={payTo} network={chain} kind="address" />
      </Fact>
      <Fact name="Network">
        <Network chain={chain} />
      </Fact>
      <Fact name="Protocol">{protocolNames[payment.protocol]}</Fact>
      {walletId !== null && (
        <Fact name="Wallet">
          <WalletLink walletId={walletId} />
        </Fact>
      )}
      <Fact name="API key">
        <ActorName id={payment.apiKeyId} />
      </Fact>
      {vaultId !== null && (
        <Fact name="Vault">
          <Id value={vaultId} to={`/vaults/${vaultId}`} />
        </Fact>
      )}
      {sessionId !== null && (
        <Fact name="Session">
          <Id value={sessionId} />
        </Fact>
      )}
      {description !== null && <Fact name="Description">{description}</Fact>}
      {payment.refundedAmount !== '0' && (
        <Fact name="Refunded">
          <Amount value={payment.refundedAmount} token={payment.token} />
        </Fact>
      )}
      <Fact name="Received">
        <Time at={payment.createdAt} full />
      </Fact>
    </Facts>
  )
}
