import type { Tx } from '../../platform/db/db.ts'
import { limitError } from './errors.ts'
import { unlimited } from './plans.ts'
import type { Ctx } from './ports.ts'
import { periodOf, quotas, type UsageKind } from './quotas.ts'
import { addToCounter, lockCounter, planOf } from './store.ts'
import { reportThresholds } from './thresholds.ts'

/**
 * Counts what a transaction creates of a kind, one by default, or refuses all of it with the document's limit error. The counter stays
 * locked until that transaction ends, so that parallel requests together never exceed the limit.
 */
export async function countOrRefuse(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'upgradeUrl' | 'publish'>,
  kind: UsageKind,
  count = 1,
): Promise<void> {
  const period = periodOf(kind, ctx.clock.now())
  const limit = quotas[kind].limitOf(await planOf(tx, ctx.tenant.organisationId))
  const used = await lockCounter(tx, ctx.tenant, kind, period)
  if (limit !== unlimited && used + count > limit) throw limitError(ctx, quotas[kind].code, limit, used)
  await addToCounter(tx, ctx.tenant, kind, period, count)
  await reportThresholds(tx, ctx, { kind, limit, used: used + count })
}
