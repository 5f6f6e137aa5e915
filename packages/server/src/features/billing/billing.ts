import type { z } from 'zod'
import {
  type CounterToCheck,
  correctCounter,
  type Drift,
  findDrift,
  monthAround,
  periodOf,
  planOf,
  usageKinds,
  usageOf,
} from '../plans/index.ts'
import type { Ctx } from './ports.ts'
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
    childAddresses: figureOf('childAddresses'),
  }
}

/** Returns the organization's plan, with its limits and where to change it. */
export async function getPlan(ctx: Ctx): Promise<PlanRecord> {
  const { name, ...limits } = await planOf(ctx.db, ctx.tenant.organisationId)
  return { plan: name, limits, upgradeUrl: ctx.upgradeUrl }
}

/**
 * Corrects the counters to what the rows say. Rows and counter are compared as of one instant and only their difference is added, so that no
 * sale waits while rows are counted, and what is sold meanwhile counts once.
 */
export async function rebuildCache(ctx: Ctx): Promise<z.input<typeof Rebuilt>> {
  const now = ctx.clock.now()
  const checks = usageKinds.flatMap((kind) =>
    ctx.recounts
      .filter((recount) => recount.kind === kind)
      .map(({ counting }) => ({ kind, period: periodOf(kind, now), counting: counting(ctx.tenant, now) })),
  )
  const drifts: { readonly check: CounterToCheck; readonly drift: Drift }[] = []
  for (const check of checks) drifts.push({ check, drift: await findDrift(ctx.db, ctx.tenant, check) })
  await ctx.db.tx(async (tx) => {
    for (const { check, drift } of drifts) if (drift.drift !== 0n) await correctCounter(tx, ctx.tenant, check, drift)
  })
  return { rebuilt: true }
}
