import { z } from 'zod'
import { named } from '../../platform/named.ts'
import { Instant } from '../../platform/wire.ts'
import { PlanName, UsageFigure } from '../plans/index.ts'

/**
 * The usage of the organization in the calling key's environment. `period` is the calendar month in UTC; its end is exclusive.
 */
export const Usage = z.strictObject({
  plan: PlanName,
  period: z.strictObject({ start: Instant, end: Instant }),
  payments: UsageFigure,
  byoWallets: UsageFigure,
  managedWallets: UsageFigure,
  activeVaults: UsageFigure,
  persistedVaults: UsageFigure,
  storageBytes: UsageFigure,
  webhooks: UsageFigure,
  childAddresses: UsageFigure,
})
export type Usage = z.input<typeof Usage>

const Limit = z.int()

/** The plan and its limits; -1 means unlimited. */
export const PlanRecord = z.strictObject({
  plan: PlanName,
  limits: z.strictObject({
    paymentsPerMonth: Limit,
    byoWallets: Limit,
    managedWallets: Limit,
    childAddresses: Limit,
    registryRoutes: Limit,
    webhooks: Limit,
    activeVaults: Limit,
    persistedVaults: Limit,
    storageBytes: Limit,
    documentsPerVault: Limit,
    filesPerVault: Limit,
    fileBytes: Limit,
    vaultTtlSecondsDefault: Limit,
    vaultTtlSecondsMax: Limit,
  }),
  upgradeUrl: z.url(),
})
export type PlanRecord = z.input<typeof PlanRecord>

export const Rebuilt = z.strictObject({ rebuilt: z.literal(true) })

named({ UsageFigure, Usage, PlanRecord, Rebuilt })
