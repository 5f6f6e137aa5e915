import { z } from 'zod'
import { named } from '../../platform/named.ts'
import type { Operation } from '../../platform/operation.ts'
import { Instant } from '../../platform/wire.ts'
import {
  type CounterToCheck,
  correctCounter,
  type Drift,
  findDrift,
  monthAround,
  PlanName,
  periodOf,
  planOf,
  UsageFigure,
  usageKinds,
  usageOf,
} from '../plans/index.ts'
import { type Ctx, type Deps, operation } from './ports.ts'

/**
 * The usage of the organisation in the calling key's environment. `period` is the calendar month in UTC; its end is exclusive.
 */
export const Usage = z.strictObject({
  plan: PlanName.describe('The plan of the organisation.'),
  period: z
    .strictObject({
      start: Instant.describe('Start of the month.'),
      end: Instant.describe('End of the month, exclusive.'),
    })
    .describe('The calendar month (UTC) in which payments are counted.'),
  payments: UsageFigure.describe('Verified payments of the month.'),
  byoWallets: UsageFigure.describe('Registered wallets of your own.'),
  managedWallets: UsageFigure.describe('Managed wallets, without child addresses.'),
  activeVaults: UsageFigure.describe('Vaults that are not persisted.'),
  persistedVaults: UsageFigure.describe('Persisted vaults.'),
  storageBytes: UsageFigure.describe('Documents, files and emitted events.'),
  webhooks: UsageFigure.describe('Webhooks.'),
  childAddresses: UsageFigure.describe('Child addresses of all managed wallets.'),
})
export type Usage = z.input<typeof Usage>

const Limit = z.int()

/** The plan and its limits; -1 means unlimited. */
const PlanRecord = z.strictObject({
  plan: PlanName.describe('The plan of the organisation.'),
  limits: z
    .strictObject({
      paymentsPerMonth: Limit.describe('Verified payments in a calendar month (UTC).'),
      byoWallets: Limit.describe('Registered wallets of your own.'),
      managedWallets: Limit.describe('Managed wallets, without child addresses.'),
      childAddresses: Limit.describe('Child addresses of all managed wallets.'),
      registryRoutes: Limit.describe('Routes in the registry.'),
      webhooks: Limit.describe('Webhooks.'),
      activeVaults: Limit.describe('Vaults that are not persisted.'),
      persistedVaults: Limit.describe('Persisted vaults.'),
      storageBytes: Limit.describe('Documents, files and emitted events.'),
      documentsPerVault: Limit.describe('Documents in one vault.'),
      filesPerVault: Limit.describe('Files in one vault.'),
      fileBytes: Limit.describe('Bytes of one file.'),
      vaultTtlSecondsDefault: Limit.describe('Lifetime of a vault in seconds, if the request names none.'),
      vaultTtlSecondsMax: Limit.describe('Longest lifetime of a vault, in seconds.'),
    })
    .describe('Its limits; -1 means unlimited.'),
  upgradeUrl: z.url().describe('The billing page of the dashboard.'),
})
type PlanRecord = z.input<typeof PlanRecord>

const Rebuilt = z.strictObject({ rebuilt: z.literal(true).describe('Always true.') })

named({ UsageFigure, Usage, PlanRecord, Rebuilt })

export const billingOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'billing.usage',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/billing/usage',
    summary: 'Get the usage and the limits of the plan.',
    description: 'Payments are counted by calendar month (UTC).',
    output: Usage,
    run: (ctx) => getUsage(ctx),
  }),
  operation({
    id: 'billing.plan',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/billing/plan',
    summary: 'Get the plan with all its limits.',
    description: 'Only the operator changes the plan (`purser admin set-plan`).',
    output: PlanRecord,
    run: (ctx) => getPlan(ctx),
  }),
  operation({
    id: 'billing.rebuildCache',
    needs: { role: 'owner', scope: 'organisation' },
    method: 'POST',
    path: '/billing/rebuild-cache',
    summary: 'Recount usage from the records.',
    description: 'Corrects the counters that quotas are compared with. It changes nothing else.',
    output: Rebuilt,
    cost: () => 50,
    run: (ctx) => rebuildCache(ctx),
  }),
]

/** Returns what the organisation has used, as `GET /vaults/quota` shows it too. */
export async function getUsage(ctx: Pick<Ctx, 'clock' | 'db' | 'recounts' | 'tenant'>): Promise<Usage> {
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

/** Returns the organisation's plan, with its limits and where to change it. */
async function getPlan(ctx: Pick<Ctx, 'db' | 'tenant' | 'upgradeUrl'>): Promise<PlanRecord> {
  const { name, ...limits } = await planOf(ctx.db, ctx.tenant.organisationId)
  return { plan: name, limits, upgradeUrl: ctx.upgradeUrl }
}

/**
 * Corrects the counters from the rows. Rows and counters are read as of one instant and only the difference is added, so that payments need not wait
 * while rows are counted, and payments made meanwhile count once.
 */
async function rebuildCache(ctx: Pick<Ctx, 'clock' | 'db' | 'recounts' | 'tenant'>): Promise<z.input<typeof Rebuilt>> {
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
