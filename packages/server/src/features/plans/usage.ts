import { z } from 'zod'
import { type Plan, unlimited } from './plans.ts'
import type { Ctx } from './ports.ts'
import { monthOf, quotas, type UsageKind } from './quotas.ts'
import { listCounters, listSharers, planOf, readAtOneInstant } from './store.ts'

/** The used part of a quota, in a response. */
export const UsageFigure = z.strictObject({
  used: z.int().describe('What is used.'),
  limit: z.int().describe('What the plan allows; -1 means unlimited.'),
  percent: z
    .int()
    .nullable()
    .meta({ description: 'What is used of the limit, rounded down; null where it is unlimited.' }),
  unlimited: z.boolean().describe('Whether the plan has no limit for it.'),
})
type UsageFigure = z.input<typeof UsageFigure>

function shownFigure(used: number, limit: number): UsageFigure {
  const isUnlimited = limit === unlimited
  const percent = limit === 0 ? 100 : Math.floor((used * 100) / limit)
  return { used, limit, percent: isUnlimited ? null : percent, unlimited: isUnlimited }
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
      figureOf: (kind) =>
        shownFigure(Math.max(0, (counters.get(kind) ?? 0) - (gone.get(kind) ?? 0)), quotas[kind].limitOf(plan)),
    }
  })
}
