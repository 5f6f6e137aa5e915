import type { Ctx } from '../../platform/ctx.ts'
import type { Plan } from './plans.ts'
import { monthOf, quotas, type UsageKind } from './quotas.ts'
import { listCounters, listSharers, planOf, readAtOneInstant } from './store.ts'

interface UsageFigure {
  readonly used: number
  /** -1 means unlimited. */
  readonly limit: number
}

export interface Usage {
  readonly plan: Plan
  figureOf(kind: UsageKind): UsageFigure
}

/**
 * Returns the use and the plan's quotas, as every response of the API shows them: the counters without what is expired and not
 * swept, of all organizations that share the quotas, read at one instant, so that a sweep between two reads counts nothing twice and omits nothing.
 */
export function usageOf(ctx: Pick<Ctx, 'db' | 'tenant' | 'clock' | 'recounts'>): Promise<Usage> {
  const now = ctx.clock.now()
  return readAtOneInstant(ctx.db, async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const counters = await listCounters(tx, ctx.tenant, monthOf(now))
    const gone = new Map<UsageKind, number>()
    for (const organisationId of await listSharers(tx, ctx.tenant.organisationId))
      for (const { kind, gone: countGone } of ctx.recounts) {
        const tenant = { organisationId, environment: ctx.tenant.environment }
        gone.set(kind, (gone.get(kind) ?? 0) + ((await countGone?.(tx, tenant, now)) ?? 0))
      }
    return {
      plan,
      figureOf: (kind) => ({
        used: Math.max(0, (counters.get(kind) ?? 0) - (gone.get(kind) ?? 0)),
        limit: quotas[kind].limitOf(plan),
      }),
    }
  })
}
