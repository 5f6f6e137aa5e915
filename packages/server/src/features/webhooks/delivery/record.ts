import { instantOf } from '../../../platform/clock.ts'
import { batch } from '../../../platform/db/batch.ts'
import { firstIdAt } from '../../../platform/db/page.ts'
import { forTenant, systemCtx } from '../../../platform/work/runner.ts'
import { endPending } from '../delivery-store.ts'
import type { Deps } from '../ports.ts'
import { lockWebhook, markDisabled, type WebhookId } from '../store.ts'
import { type EndpointRow, listFailingSince, storeOutcomes } from './queue-store.ts'
import type { Sent } from './send.ts'

/** An endpoint that accepted nothing for this long is turned off. */
const failingMsMax = 5 * 86_400_000
/**
 * A delivery takes less than this for all of its attempts, also with the longest pauses that a receiver may request, unless it waits behind many
 * others of its endpoint.
 */
const retriesMsMax = 6 * 86_400_000
const batchItemsMax = 500
/** One batch is written at a time, while the next fills. */
const batchesMax = 1

/**
 * Stores the outcomes of deliveries, many in one transaction, and then disables endpoints that have stopped accepting deliveries. Rejects if an
 * outcome could not be stored: the delivery is then still pending. Turning one endpoint off delays no outcome of another.
 */
export function createRecord(
  deps: Pick<Deps, 'clock' | 'db' | 'eventsCommitted' | 'log' | 'metrics' | 'random'>,
): (sent: Sent) => Promise<void> {
  const disabling = new Map<WebhookId, Promise<void>>()
  const disableOnce = (endpoint: EndpointRow, reason: Reason): Promise<void> => {
    const begun =
      disabling.get(endpoint.id) ?? disable(deps, endpoint, reason).finally(() => disabling.delete(endpoint.id))
    disabling.set(endpoint.id, begun)
    return begun
  }
  const store = batch({ itemsMax: batchItemsMax, batchesMax }, async (outcomes: readonly Sent[]) => {
    await keep(deps, outcomes)
    for (const [status, all] of Map.groupBy(outcomes, (sent) => sent.status))
      deps.metrics.tasks.inc({ task: 'webhooks.deliver', outcome: outcomeOf(status) }, all.length)
    return reasonsOf(deps, outcomes)
  })
  return async (sent) => {
    const reason = await store(sent)
    if (reason === undefined) return
    await disableOnce(sent.endpoint, reason).catch((error: unknown) => {
      deps.log.warn(
        { err: error, webhookId: sent.endpoint.id },
        'a webhook could not be disabled; its next failed delivery does it',
      )
    })
  }
}

function outcomeOf(status: Sent['status']): string {
  return status === 'succeeded' ? 'done' : status === 'dead' ? 'dead' : 'failed'
}

function keep({ db, clock }: Pick<Deps, 'clock' | 'db'>, outcomes: readonly Sent[]): Promise<void> {
  return storeOutcomes(db, {
    ...healthOf(outcomes),
    attempts: outcomes.flatMap(({ attempts }) => attempts),
    now: clock.now(),
  })
}

/** An endpoint that accepted one delivery of this batch is healthy; one that accepted none fails. */
function healthOf(outcomes: readonly Sent[]) {
  const taking = new Set(outcomes.filter(({ status }) => status === 'succeeded').map(({ endpoint }) => endpoint.id))
  const all = [...new Set(outcomes.map(({ endpoint }) => endpoint.id))]
  return { healthy: [...taking], failing: all.filter((id) => !taking.has(id)) }
}

type Reason = 'gone' | 'failing'

/**
 * Returns for each delivery the reason to turn its endpoint off, if there is one. The reason is a 410, or an endpoint that has accepted nothing for five
 * days and fails a delivery for the last time. For such an endpoint a failed delivery that is older than all retries take counts too: if the endpoint
 * hangs, deliveries may come faster than it fails them for the last time. The outcomes are stored before. If a process dies before it turns the endpoint
 * off, the next such delivery does.
 */
async function reasonsOf(
  deps: Pick<Deps, 'clock' | 'db'>,
  outcomes: readonly Sent[],
): Promise<readonly (Reason | undefined)[]> {
  const now = deps.clock.now().getTime()
  const before = instantOf(now - failingMsMax)
  const firstRecent = firstIdAt('del', now - retriesMsMax)
  const isEnding = ({ status, endpoint: { failingSince }, attempts }: Sent): boolean =>
    status === 'dead' ||
    (status === 'pending' &&
      failingSince !== null &&
      failingSince <= before &&
      attempts.some(({ deliveryId }) => deliveryId < firstRecent))
  const ending = outcomes.filter(isEnding).map(({ endpoint }) => endpoint.id)
  if (ending.length === 0) return outcomes.map(() => undefined)
  const failing = new Set(await listFailingSince(deps.db, ending, before))
  return outcomes.map(({ isGone, endpoint }) => (isGone ? 'gone' : failing.has(endpoint.id) ? 'failing' : undefined))
}

function disable(
  deps: Pick<Deps, 'clock' | 'db' | 'eventsCommitted' | 'random'>,
  endpoint: EndpointRow,
  reason: Reason,
): Promise<void> {
  const { id: webhookId, organisationId, environment } = endpoint
  const ctx = forTenant(systemCtx(deps), { organisationId, environment })
  return deps.db.tx(async (tx) => {
    const now = deps.clock.now()
    await lockWebhook(tx, ctx.tenant, webhookId)
    if (!(await markDisabled(tx, ctx.tenant, webhookId))) return
    await endPending(tx, ctx.tenant, webhookId, now)
    await ctx.publish(tx, 'webhook.disabled', { webhookId, disabledAt: now.toISOString() })
    await ctx.audit(tx, { action: 'webhooks.disable', target: webhookId, details: { reason } })
  })
}
