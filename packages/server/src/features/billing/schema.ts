import { z } from 'zod'
import { named } from '../../platform/named.ts'
import { Instant } from '../../platform/wire.ts'
import { PlanName, UsageFigure } from '../plans/index.ts'

/**
 * The usage of the organization in the calling key's environment. `period` is the calendar month in UTC; its end is exclusive.
 */
export const Usage = z.strictObject({
  plan: PlanName.describe('The plan of the organisation.'),
  period: z
    .strictObject({
      start: Instant.describe('Begin of the month.'),
      end: Instant.describe('End of the month, exclusive.'),
    })
    .describe('The calendar month (UTC) in which payments are counted.'),
  payments: UsageFigure.describe('Verified payments of the month.'),
  byoWallets: UsageFigure.describe('Registered wallets of your own.'),
  managedWallets: UsageFigure.describe('Managed wallets, without child addresses.'),
  activeVaults: UsageFigure.describe('Vaults that are not persisted.'),
  persistedVaults: UsageFigure.describe('Persisted vaults.'),
  storageBytes: UsageFigure.describe('Bytes of all documents and files.'),
  webhooks: UsageFigure.describe('Webhooks.'),
  childAddresses: UsageFigure.describe('Child addresses of all managed wallets.'),
})
export type Usage = z.input<typeof Usage>

const Limit = z.int()

/** The plan and its limits; -1 means unlimited. */
export const PlanRecord = z.strictObject({
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
      storageBytes: Limit.describe('Bytes of all documents and files.'),
      documentsPerVault: Limit.describe('Documents in one vault.'),
      filesPerVault: Limit.describe('Files in one vault.'),
      fileBytes: Limit.describe('Bytes of one file.'),
      vaultTtlSecondsDefault: Limit.describe('Lifetime of a vault in seconds, if the request names none.'),
      vaultTtlSecondsMax: Limit.describe('Longest lifetime of a vault, in seconds.'),
    })
    .describe('Its limits; -1 means unlimited.'),
  upgradeUrl: z.url().describe('The billing page of the dashboard.'),
})
export type PlanRecord = z.input<typeof PlanRecord>

export const Rebuilt = z.strictObject({ rebuilt: z.literal(true).describe('Always true.') })

named({ UsageFigure, Usage, PlanRecord, Rebuilt })
