import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { FlaskConical } from 'lucide-react'
import { useMay, usePurser, useWorkspace } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Timeline } from '../../ui/timeline.tsx'
import { makeTestPayment } from '../payments/make-test-payment.ts'
import { whereItIs } from '../payments/payment-state.ts'
import { paymentSteps } from '../payments/payment-steps.tsx'
import { paymentQuery, paymentsKey } from '../payments/queries.ts'

/** Pays the reader's wallet test money, and shows the payment until it is settled. */
export function FirstPayment() {
  const { environment, purser } = useWorkspace()
  const mayPay = useMay('member')
  const queries = useQueryClient()
  const pay = useMutation({
    mutationFn: () => makeTestPayment(purser),
    onSuccess: () => queries.invalidateQueries({ queryKey: [...paymentsKey, 'list'] }),
  })
  const paymentId = pay.data?.paymentId
  if (environment !== 'test')
    return (
      <Card title="Your first payment">
        <p className="text-ink-2">
          Live payments are real money. Make a payment in the test environment first; the code stays the same.
        </p>
      </Card>
    )
  return (
    <section aria-label="Your first payment">
      <Card title="Your first payment">
        <div className="flex flex-col items-start gap-4">
          <p className="text-ink-2">
            A payer signs 0.01 USDC of test money for your wallet, as an agent does after a 402. The service verifies
            the signature and settles it on the test network.
          </p>
          {mayPay ? (
            <Button tone="primary" busy={pay.isPending} onClick={() => pay.mutate()}>
              <FlaskConical aria-hidden />
              {pay.isPending ? 'Paying …' : paymentId === undefined ? 'Make a test payment' : 'Make another'}
            </Button>
          ) : (
            <p className="text-ink-2">Members make test payments. You are a viewer.</p>
          )}
          {pay.error !== null && <ErrorBlock error={pay.error} onRetry={() => pay.mutate()} />}
          {paymentId !== undefined && <PaymentProgress key={paymentId} paymentId={paymentId} />}
        </div>
      </Card>
    </section>
  )
}

function PaymentProgress({ paymentId }: { paymentId: string }) {
  const payment = useQuery(paymentQuery(usePurser(), paymentId))
  useRefreshOn(['payment.'], [...paymentsKey, 'one', paymentId])
  if (payment.error !== null) return <ErrorBlock error={payment.error} onRetry={() => payment.refetch()} />
  if (payment.data === undefined) return <Skeleton lines={5} className="w-full" />
  return (
    <div className="flex w-full flex-col gap-4 border-t border-line pt-4">
      <p role="status" className="font-medium">
        {whereItIs(payment.data)}
      </p>
      <Timeline steps={paymentSteps(payment.data)} />
      <Link to="/payments/$paymentId" params={{ paymentId }} className="text-accent-text hover:underline">
        Open the payment
      </Link>
    </div>
  )
}
