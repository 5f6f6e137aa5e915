import { instantOf } from '../../../platform/clock.ts'
import { batch } from '../../../platform/db/batch.ts'
import { forTenant, systemCtx } from '../../../platform/work/runner.ts'
import { endPending } from '../delivery-store.ts'
import type { Deps } from '../ports.ts'
import { lockWebhook, markDisabled } from '../store.ts'
import { type EndpointRow, listFailingSince, storeOutcomes } from './queue-store.ts'
import type { Sent } from './send.ts'

/** An endpoint that accepted nothing for this long is turned off. */
const failingMsMax = 5 * 86_400_000
const roundItemsMax = 500
/** One batch fills while the other is written. */
const roundsMax = 1

/**
 * Stores the outcomes of deliveries, many in one transaction. Rejects if an outcome could not be stored: the delivery is then
 * still pending.
 */
export function createRecord(deps: Deps): (sent: Sent) => Promise<void> {
  return batch({ itemsMax: roundItemsMax, batchesMax: roundsMax }, async (round: readonly Sent[]) => {
    await keep(deps, round)
    for (const [status, all] of Map.groupBy(round, (sent) => sent.status))
      deps.metrics.jobs.inc({ job: 'webhooks.deliver', outcome: outcomeOf(status) }, all.length)
    await disableFailing(deps, round)
    return round.map(() => undefined)
  })
}

function outcomeOf(status: Sent['status']): string {
  return status === 'succeeded' ? 'done' : status === 'dead' ? 'dead' : 'failed'
}

function keep({ db, clock }: Deps, round: readonly Sent[]): Promise<void> {
  return storeOutcomes(db, {
    ...healthOf(round),
    attempts: round.flatMap(({ attempts }) => attempts),
    now: clock.now(),
  })
}

/** An endpoint that accepted one delivery of this batch is healthy; one that accepted none fails. */
function healthOf(round: readonly Sent[]) {
  const taking = new Set(round.filter(({ status }) => status === 'succeeded').map(({ endpoint }) => endpoint.id))
  const all = [...new Set(round.map(({ endpoint }) => endpoint.id))]
  return { healthy: [...taking], failing: all.filter((id) => !taking.has(id)) }
}

/**
 * Turns endpoints off: at once after a 410, and when a delivery dies whose endpoint accepted nothing for five days. The outcomes
 * are already stored, so if a process dies before this, the next dead delivery turns the endpoint off.
 */
async function disableFailing(deps: Deps, round: readonly Sent[]): Promise<void> {
  const gone = new Set(round.filter(({ isGone }) => isGone).map(({ endpoint }) => endpoint.id))
  const dying = round.filter(({ status }) => status === 'dead').map(({ endpoint }) => endpoint.id)
  if (dying.length === 0) return
  const before = instantOf(deps.clock.now().getTime() - failingMsMax)
  const failing = new Set(await listFailingSince(deps.db, dying, before))
  const endpoints = new Map(round.map(({ endpoint }) => [endpoint.id, endpoint]))
  for (const endpoint of endpoints.values()) {
    if (gone.has(endpoint.id)) await disable(deps, endpoint, 'gone')
    else if (failing.has(endpoint.id)) await disable(deps, endpoint, 'failing')
  }
}

function disable(deps: Deps, endpoint: EndpointRow, reason: 'gone' | 'failing'): Promise<void> {
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
