import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import {
  listCounters,
  lockCounter,
  monthAround,
  monthOf,
  type Plan,
  periodOf,
  planOf,
  quotas,
  setCounter,
  type UsageKind,
  usageKinds,
} from '../plans/index.ts'
import type { PlanRecord, Rebuilt, Usage } from './schema.ts'

/** What the organisation has used, as its counters say. */
export async function getUsage(ctx: Ctx): Promise<Usage> {
  const now = ctx.clock.now()
  const [plan, counters] = await Promise.all([
    planOf(ctx.db, ctx.tenant.organisationId),
    listCounters(ctx.db, ctx.tenant, monthOf(now)),
  ])
  const figure = (kind: UsageKind) => figureOf(plan, counters, kind)
  return {
    plan: plan.name,
    period: monthAround(now),
    payments: figure('payments'),
    byoWallets: figure('byoWallets'),
    managedWallets: figure('managedWallets'),
    activeVaults: figure('activeVaults'),
    persistedVaults: figure('persistedVaults'),
    storageBytes: figure('storageBytes'),
    webhooks: figure('webhooks'),
  }
}

function figureOf(plan: Plan, counters: ReadonlyMap<string, number>, kind: UsageKind) {
  return { used: counters.get(kind) ?? 0, limit: quotas[kind].limitOf(plan) }
}

/** The plan that the organisation is on, with its limits and where to change it. */
export async function getPlan(ctx: Ctx): Promise<PlanRecord> {
  const { name, ...limits } = await planOf(ctx.db, ctx.tenant.organisationId)
  return { plan: name, limits, upgradeUrl: ctx.upgradeUrl }
}

/**
 * Sets the counters to what the records say. Each counter is held while its records are counted, so that a writer is
 * counted either here or by its own addition and never by both.
 */
export function rebuildCache(ctx: Ctx): Promise<z.input<typeof Rebuilt>> {
  return ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const recounts = usageKinds.flatMap((kind) => ctx.recounts.filter((recount) => recount.kind === kind))
    for (const { kind, count } of recounts) {
      const period = periodOf(kind, now)
      await lockCounter(tx, ctx.tenant, kind, period)
      await setCounter(tx, ctx.tenant, kind, period, await count(tx, ctx.tenant, now))
    }
    return { rebuilt: true }
  })
}
