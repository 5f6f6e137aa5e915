import type { Webhook, WebhookAttempt } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count, duration } from '../../ui/format.ts'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { attemptWords, eventWords, healthOf, healthQuery } from './queries.ts'

/** The outcomes of the newest attempts, one stripe each, the newest on the right. */
export function HealthCard({ webhook }: { webhook: Webhook }) {
  const { data, error, refetch } = useQuery(healthQuery(usePurser(), webhook.id))
  return (
    <Card title="Newest attempts">
      <div className="flex flex-col gap-4">
        {error !== null ? (
          <ErrorBlock error={error} onRetry={() => refetch()} />
        ) : data === undefined ? (
          <Skeleton lines={2} />
        ) : (
          <Strip attempts={data.items} />
        )}
        <Facts>
          <Fact name="Endpoint">
            <Id value={webhook.id} />
          </Fact>
          <Fact name="Events">{eventWords(webhook)}</Fact>
          <Fact name="Created">
            <Time at={webhook.createdAt} full />
          </Fact>
        </Facts>
      </div>
    </Card>
  )
}

function Strip({ attempts }: { attempts: readonly WebhookAttempt[] }) {
  const { failed, p95Ms, lastError } = healthOf(attempts)
  if (attempts.length === 0) return <p className="text-ink-2">No events sent yet. Send a test event.</p>
  const words =
    failed === 0
      ? `All ${attempts.length} attempts succeeded`
      : `${failed} of ${count(attempts.length, 'attempt')} failed`
  return (
    <div className="flex flex-col gap-2">
      <div className="flex h-7 items-stretch gap-px" aria-hidden>
        {attempts.toReversed().map((attempt) => (
          <span
            key={attempt.id}
            title={attemptWords(attempt)}
            className={`max-w-3 min-w-px flex-1 rounded-xs ${attempt.status === 'failed' ? 'bg-failed' : 'bg-settled'}`}
          />
        ))}
      </div>
      <p className="num text-ink-2">
        {words}
        {p95Ms !== undefined && `; p95 ${duration(p95Ms)}`}.
        {lastError !== undefined && <span className="text-failed"> Now failing: {lastError}.</span>}
      </p>
    </div>
  )
}
