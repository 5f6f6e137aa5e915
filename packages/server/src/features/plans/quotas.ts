import { instantOf } from '../../platform/clock.ts'
import type { planErrors } from './errors.ts'
import type { Plan } from './plans.ts'

/**
 * The counted kinds, in the order in which a transaction that locks several counters must lock them; any other order can
 * deadlock.
 */
export const usageKinds = [
  'payments',
  'byoWallets',
  'managedWallets',
  'activeVaults',
  'persistedVaults',
  'storageBytes',
  'webhooks',
  'childAddresses',
] as const
export type UsageKind = (typeof usageKinds)[number]

interface Quota {
  readonly limitOf: (plan: Plan) => number
  readonly code: keyof typeof planErrors
  readonly per: 'month' | 'all'
}

/** For each kind: the plan's figure that limits it, the error above it, and whether it is counted per month. */
export const quotas: Readonly<Record<UsageKind, Quota>> = {
  payments: { limitOf: (plan) => plan.paymentsPerMonth, code: 'payment-limit-reached', per: 'month' },
  byoWallets: { limitOf: (plan) => plan.byoWallets, code: 'byo-wallet-limit-reached', per: 'all' },
  managedWallets: { limitOf: (plan) => plan.managedWallets, code: 'managed-wallet-limit-reached', per: 'all' },
  activeVaults: { limitOf: (plan) => plan.activeVaults, code: 'vault-quota-exceeded', per: 'all' },
  persistedVaults: { limitOf: (plan) => plan.persistedVaults, code: 'persisted-vault-quota-exceeded', per: 'all' },
  storageBytes: { limitOf: (plan) => plan.storageBytes, code: 'storage-quota-exceeded', per: 'all' },
  webhooks: { limitOf: (plan) => plan.webhooks, code: 'webhook-limit-reached', per: 'all' },
  childAddresses: { limitOf: (plan) => plan.childAddresses, code: 'child-address-limit-reached', per: 'all' },
}

/** Returns the counter's period at an instant: the calendar month in UTC, or `all` for kinds that are not counted per month. */
export function periodOf(kind: UsageKind, now: Date): string {
  return quotas[kind].per === 'month' ? monthOf(now) : 'all'
}

/** `YYYY-MM` of an instant, in UTC. */
export function monthOf(now: Date): string {
  return now.toISOString().slice(0, 7)
}

/** The UTC day of an instant; gas is counted per day. */
export function dayOf(now: Date): string {
  return now.toISOString().slice(0, 10)
}

/** Returns the calendar month in UTC that contains the instant: its first moment, and the first moment after it. */
export function monthAround(now: Date): { readonly start: Date; readonly end: Date } {
  const year = now.getUTCFullYear()
  const month = now.getUTCMonth()
  return { start: instantOf(Date.UTC(year, month)), end: instantOf(Date.UTC(year, month + 1)) }
}
