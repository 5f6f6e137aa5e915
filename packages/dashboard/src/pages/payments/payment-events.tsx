import type { Payment, Purser, RecordedEvent, Webhook, WebhookAttempt } from '@purser/sdk'
import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { duration } from '../../ui/format.ts'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { attemptWords, shortUrl } from '../webhooks/queries.ts'
import { paymentsKey } from './queries.ts'

/** Events are searched this long before and after the change of the payment; both are written in one transaction. */
const aroundMs = 5_000
const readMax = 100
/** The attempts of at most this many endpoints are read, the newest; each costs a request. */
const endpointsMax = 5
/** Attempts are read from the event until this much later. */
const attemptsMs = 120_000
/** Poll interval for the attempts of a new event. */
const attemptsEveryMs = 3_000

type EventType = 'payment.received' | 'payment.settled' | 'payment.settlement_failed' | 'payment.refunded'

/** Returns a step for each event of a payment that was found, with the attempts to deliver it. */
export function useEventSteps(payment: Payment): readonly (TimelineStep & { readonly type: string })[] {
  const purser = usePurser()
  const { id, status, refundedAmount } = payment
  const events = useQuery({
    queryKey: [...paymentsKey, 'events', id, status, refundedAmount],
    queryFn: ({ signal }) => readEvents(purser, payment, signal),
  })
  const webhooks = useQuery({
    queryKey: ['webhooks', 'of-payment'],
    queryFn: ({ signal }) => purser.webhooks.list({ limit: endpointsMax }, { signal }).page(),
  })
  const pairs = (events.data ?? []).flatMap((event) =>
    (webhooks.data?.items ?? []).filter((webhook) => takes(webhook, event)).map((webhook) => ({ event, webhook })),
  )
  const attempts = useQueries({
    queries: pairs.map(({ event, webhook }) => ({
      queryKey: ['webhooks', 'attempts-of-event', webhook.id, event.id],
      queryFn: ({ signal }: { signal: AbortSignal }) => readAttempts(purser, { event, webhook, signal }),
      // Its first attempt comes shortly after the event, and no event reports it.
      refetchInterval: ({ state }: { state: { data?: readonly WebhookAttempt[] | undefined } }) =>
        Date.now() < Date.parse(event.createdAt) + attemptsMs &&
        !state.data?.some(({ status }) => status === 'succeeded')
          ? attemptsEveryMs
          : false,
    })),
  })
  return (events.data ?? []).map((event) => ({
    key: event.id,
    type: event.type,
    state: 'settled',
    at: event.createdAt,
    title: (
      <>
        Event{' '}
        <Link to="/events" search={{ open: event.id }} className="font-mono text-sm text-accent-text hover:underline">
          {event.type}
        </Link>
      </>
    ),
    children: (
      <ul className="flex flex-col gap-0.5">
        {pairs.map((pair, index) =>
          pair.event === event
            ? attempts[index]?.data?.map((attempt) => (
                <li key={attempt.id}>
                  <AttemptLine webhook={pair.webhook} attempt={attempt} />
                </li>
              ))
            : null,
        )}
      </ul>
    ),
  }))
}

function AttemptLine({ webhook, attempt }: { webhook: Webhook; attempt: WebhookAttempt }) {
  return (
    <Link
      to="/webhooks/$webhookId"
      params={{ webhookId: webhook.id }}
      search={{ open: attempt.id }}
      className="break-words hover:text-ink hover:underline"
    >
      {shortUrl(webhook)}: {attemptWords(attempt).toLowerCase()} after {duration(attempt.durationMs)}
      {attempt.attempt > 1 && `, attempt ${attempt.attempt}`}
    </Link>
  )
}

function takes({ events, isActive }: Webhook, { type }: RecordedEvent): boolean {
  return isActive && events.some((one) => one === '*' || one === type)
}

/** The events about a payment, the oldest first: of each type those written near the time of its change. */
async function readEvents(purser: Purser, payment: Payment, signal: AbortSignal): Promise<readonly RecordedEvent[]> {
  const { id, status, createdAt, settledAt, refundedAmount } = payment
  const near = (type: EventType, at: string) => ({ type, from: moved(at, -aroundMs), to: moved(at, aroundMs) })
  const wanted = [
    near('payment.received', createdAt),
    ...(settledAt === null ? [] : [near('payment.settled', settledAt)]),
    ...(status === 'settlement_failed' ? [{ type: 'payment.settlement_failed', from: createdAt } as const] : []),
    ...(refundedAmount === '0' ? [] : [{ type: 'payment.refunded', from: createdAt } as const]),
  ]
  const pages = await Promise.all(
    wanted.map((query) => purser.events.list({ ...query, limit: readMax }, { signal }).page()),
  )
  return pages
    .flatMap(({ items }) => items)
    .filter(({ payload }) => payload.paymentId === id)
    .toSorted((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt))
}

async function readAttempts(
  purser: Purser,
  { event, webhook, signal }: { event: RecordedEvent; webhook: Webhook; signal: AbortSignal },
): Promise<readonly WebhookAttempt[]> {
  const query = { from: moved(event.createdAt, -aroundMs), to: moved(event.createdAt, attemptsMs), limit: readMax }
  const { items } = await purser.webhooks.attempts.list(webhook.id, query, { signal }).page()
  return items.filter(({ eventId }) => eventId === event.id).toReversed()
}

function moved(at: string, ms: number): string {
  return new Date(Date.parse(at) + ms).toISOString()
}
