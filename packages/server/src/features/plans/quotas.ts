import { instantOf } from '../../platform/clock.ts'
import type { Deps, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Sql } from '../../platform/db/db.ts'
import { defineErrors, type Problem } from '../../platform/errors.ts'
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

/** Counts one kind from its rows. Each feature that counts has one; the process's ports contain them all. */
export interface Recount {
  readonly kind: UsageKind
  /** Selects the number that exists now, or for a kind per month the number in the calendar month that contains `now`. */
  counting(tenant: Tenant, now: Date): Sql
  /** The number that the counter still contains of expired things, which is subtracted before it is shown. Omitted: none. */
  gone?(db: Queryable, tenant: Tenant, now: Date): Promise<number>
}

const title = 'Plan Limit Reached'

const fail = defineErrors({
  'payment-limit-reached': { status: 429, title, detail: 'The payments that the plan grants per month are used up.' },
  'byo-wallet-limit-reached': { status: 429, title, detail: 'The plan takes no more wallets of your own.' },
  'managed-wallet-limit-reached': { status: 429, title, detail: 'The plan takes no more managed wallets.' },
  'webhook-limit-reached': { status: 429, title, detail: 'The plan takes no more webhooks.' },
  'child-address-limit-reached': { status: 429, title, detail: 'The plan takes no more child addresses.' },
  'vault-quota-exceeded': { status: 429, title, detail: 'The plan takes no more active vaults.' },
  'persisted-vault-quota-exceeded': { status: 429, title, detail: 'The plan takes no more persisted vaults.' },
  'documents-per-vault-exceeded': { status: 422, title, detail: 'The vault takes no more documents.' },
  'files-per-vault-exceeded': { status: 422, title, detail: 'The vault takes no more files.' },
  'storage-quota-exceeded': { status: 429, title, detail: 'The storage that the plan grants does not suffice.' },
})

/** Errors of operations that reserve the operator's gas. */
export const gasErrors = {
  'settlement-budget-exceeded': {
    status: 429,
    title: 'Settlement Budget Exceeded',
    detail: 'What the operator spends on gas for this organisation per network and day is used up.',
  },
} as const

/** The limit errors, for the tables of the operations that count. */
export const planErrors = fail.table

/**
 * Returns the document's limit error: a problem record with `limit`, `current` and `upgradeUrl`; its detail contains the figures
 * too.
 */
export function limitError(
  ctx: Pick<Deps, 'upgradeUrl'>,
  code: keyof typeof planErrors,
  limit: number,
  current: number,
): Problem {
  const unit = code === 'storage-quota-exceeded' ? ' bytes' : ''
  const detail = `${fail.table[code].detail.slice(0, -1)}: ${current} of ${limit}${unit} used.`
  return fail(code, { detail, limit, current, upgradeUrl: ctx.upgradeUrl })
}
