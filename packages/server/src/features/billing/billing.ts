import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import { lockCounter, monthAround, periodOf, planOf, setCounter, usageKinds, usageOf } from '../plans/index.ts'
import type { PlanRecord, Rebuilt, Usage } from './schema.ts'

/** Returns what the organization has used, as `GET /vaults/quota` shows it too. */
export async function getUsage(ctx: Ctx): Promise<Usage> {
  const { plan, figureOf } = await usageOf(ctx)
  return {
    plan: plan.name,
    period: monthAround(ctx.clock.now()),
    payments: figureOf('payments'),
    byoWallets: figureOf('byoWallets'),
    managedWallets: figureOf('managedWallets'),
    activeVaults: figureOf('activeVaults'),
    persistedVaults: figureOf('persistedVaults'),
    storageBytes: figureOf('storageBytes'),
    webhooks: figureOf('webhooks'),
  }
}

/** Returns the organization's plan, with its limits and where to change it. */
export async function getPlan(ctx: Ctx): Promise<PlanRecord> {
  const { name, ...limits } = await planOf(ctx.db, ctx.tenant.organisationId)
  return { plan: name, limits, upgradeUrl: ctx.upgradeUrl }
}

/**
 * Sets the counters to what the rows say. Each counter is locked while its rows are counted, so that a write is counted either
 * here or by its own addition and never by both.
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
