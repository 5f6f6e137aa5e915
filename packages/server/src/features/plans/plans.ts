import { z } from 'zod'

export const planNames = ['hobby', 'pro', 'enterprise'] as const
export const PlanName = z.enum(planNames)
export type PlanName = z.output<typeof PlanName>

/** The quotas and limits of a plan. -1 means unlimited, here and in the API. */
export interface Plan {
  readonly name: PlanName
  /** Verified payments per calendar month in UTC. */
  readonly paymentsPerMonth: number
  readonly byoWallets: number
  readonly managedWallets: number
  /** Of all managed wallets together. */
  readonly childAddresses: number
  /** Most routes in the registry. A further one replaces the route that was reported longest ago. */
  readonly registryRoutes: number
  readonly webhooks: number
  readonly activeVaults: number
  readonly persistedVaults: number
  readonly storageBytes: number
  readonly documentsPerVault: number
  readonly filesPerVault: number
  readonly fileBytes: number
  readonly vaultTtlSecondsDefault: number
  readonly vaultTtlSecondsMax: number
}

export const unlimited = -1
/** Organisations of one account that are on this plan share its quotas. */
export const freePlan: PlanName = 'hobby'
const mebibyte = 2 ** 20
const gibibyte = 2 ** 30
const day = 86_400

/** All plans and their figures. 1 MB is 2^20 bytes and 1 GB is 2^30. */
export const plans: Readonly<Record<PlanName, Plan>> = {
  hobby: {
    name: 'hobby',
    paymentsPerMonth: 100,
    byoWallets: 1,
    managedWallets: 1,
    childAddresses: 1_000,
    registryRoutes: 100,
    webhooks: 1,
    activeVaults: 3,
    persistedVaults: 1,
    storageBytes: 500 * mebibyte,
    documentsPerVault: 50,
    filesPerVault: 5,
    fileBytes: 10 * mebibyte,
    vaultTtlSecondsDefault: day,
    vaultTtlSecondsMax: day,
  },
  pro: {
    name: 'pro',
    paymentsPerMonth: 10_000,
    byoWallets: 5,
    managedWallets: 5,
    childAddresses: 100_000,
    registryRoutes: 10_000,
    webhooks: 10,
    activeVaults: 50,
    persistedVaults: 20,
    storageBytes: 10 * gibibyte,
    documentsPerVault: unlimited,
    filesPerVault: 100,
    fileBytes: 100 * mebibyte,
    vaultTtlSecondsDefault: 7 * day,
    vaultTtlSecondsMax: 7 * day,
  },
  enterprise: {
    name: 'enterprise',
    paymentsPerMonth: unlimited,
    byoWallets: unlimited,
    managedWallets: unlimited,
    childAddresses: unlimited,
    registryRoutes: unlimited,
    webhooks: unlimited,
    activeVaults: unlimited,
    persistedVaults: unlimited,
    storageBytes: unlimited,
    documentsPerVault: unlimited,
    filesPerVault: unlimited,
    fileBytes: gibibyte,
    vaultTtlSecondsDefault: 30 * day,
    vaultTtlSecondsMax: unlimited,
  },
}
