import { instantOf, utcMonthOf } from '../../platform/clock.ts'
import type { Deps, Environment, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Sql } from '../../platform/db/db.ts'
import { defineErrors, type Problem } from '../../platform/errors.ts'
import type { OrganisationId } from '../../platform/ids.ts'
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
  readonly allowanceOf: (plan: Plan) => number
  readonly code: keyof typeof planErrors
  readonly per: 'month' | 'all'
}

/** For each kind: the plan's figure that limits it, the error above it, and whether it is counted per month. */
export const quotas: Readonly<Record<UsageKind, Quota>> = {
  payments: { allowanceOf: (plan) => plan.paymentsPerMonth, code: 'payment-limit-reached', per: 'month' },
  byoWallets: { allowanceOf: (plan) => plan.byoWallets, code: 'byo-wallet-limit-reached', per: 'all' },
  managedWallets: { allowanceOf: (plan) => plan.managedWallets, code: 'managed-wallet-limit-reached', per: 'all' },
  activeVaults: { allowanceOf: (plan) => plan.activeVaults, code: 'vault-quota-exceeded', per: 'all' },
  persistedVaults: { allowanceOf: (plan) => plan.persistedVaults, code: 'persisted-vault-quota-exceeded', per: 'all' },
  storageBytes: { allowanceOf: (plan) => plan.storageBytes, code: 'storage-quota-exceeded', per: 'all' },
  webhooks: { allowanceOf: (plan) => plan.webhooks, code: 'webhook-limit-reached', per: 'all' },
  childAddresses: { allowanceOf: (plan) => plan.childAddresses, code: 'child-address-limit-reached', per: 'all' },
}

/** Returns the counter's period at an instant: the calendar month in UTC, or `all` for kinds that are not counted per month. */
export function periodOf(kind: UsageKind, now: Date): string {
  return quotas[kind].per === 'month' ? utcMonthOf(now) : 'all'
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

/** The organisations whose use counts toward the same quotas, in one environment. */
export interface Sharers {
  readonly organisationIds: readonly OrganisationId[]
  readonly environment: Environment
}

/** Counts one kind from its rows. Each feature that counts has one; the process's ports contain them all. */
export interface Recount {
  readonly kind: UsageKind
  /** Selects the number that exists now, or for a kind per month the number in the calendar month that contains `now`. */
  counting(tenant: Tenant, now: Date): Sql
  /** The number that the counters still contain of expired things, which is subtracted before it is shown. Omitted: none. */
  gone?(db: Queryable, sharers: Sharers, now: Date): Promise<number>
}

const title = 'Plan Limit Reached'

const fail = defineErrors({
  'payment-limit-reached': {
    status: 429,
    title,
    detail: 'The payments that the plan grants per month are used up.',
    causes: [
      'The organisation has verified as many payments in this calendar month (UTC) as its plan includes. Organisations of one owner on the plan hobby share the count; stub payments count in test.',
    ],
    fix: 'Raise the plan at `upgradeUrl` or with `purser admin set-plan`. Until then payers get no access; a refused credential was not used and may be verified after the change. `GET /billing/usage` shows the count; use it for an alert before it is full.',
  },
  'byo-wallet-limit-reached': {
    status: 429,
    title,
    detail: 'The plan allows no more wallets of your own.',
    causes: [
      'The organisation has registered as many BYO wallets as the plan includes (`limit`); wallets that were deleted do not count.',
    ],
    fix: 'Delete one that is not used (`DELETE /wallet-infra/byo-wallets/{id}`), or raise the plan at `upgradeUrl`. One wallet can take payments of all your routes.',
  },
  'managed-wallet-limit-reached': {
    status: 429,
    title,
    detail: 'The plan allows no more managed wallets.',
    causes: [
      'The organisation has as many master wallets as the plan includes. A retired one does not count, but restoring it does.',
    ],
    fix: 'Derive a child address of an existing wallet instead (`POST /wallet-infra/master-wallets/{id}/child-addresses`), retire a wallet that is empty, or raise the plan at `upgradeUrl`.',
  },
  'webhook-limit-reached': {
    status: 429,
    title,
    detail: 'The plan allows no more webhooks.',
    causes: ['The organisation has as many webhooks as the plan includes; a webhook that is turned off counts too.'],
    fix: 'Subscribe an existing webhook to more types (`PATCH /webhooks/{webhookId}` with `events`), delete one, or raise the plan at `upgradeUrl`. `GET /events/stream` needs no webhook.',
  },
  'child-address-limit-reached': {
    status: 429,
    title,
    detail: 'The plan allows no more child addresses.',
    causes: [
      'The child addresses of all managed wallets together, with those of this request (`count`), are more than the plan includes.',
    ],
    fix: 'Request fewer with `count`, assign addresses again that your customers no longer use, or raise the plan at `upgradeUrl`. A child address cannot be deleted, since money can still arrive there.',
  },
  'vault-quota-exceeded': {
    status: 429,
    title,
    detail: 'The plan allows no more active vaults.',
    causes: [
      'The organisation has as many active vaults as the plan includes. A vault counts until it expires or is deleted.',
      'A session makes a vault of its own, so it counts too.',
    ],
    fix: 'Delete vaults that are not needed (`DELETE /vaults/{id}`), create them with a shorter `ttl`, or raise the plan at `upgradeUrl`. `GET /vaults/quota` shows the counts.',
  },
  'persisted-vault-quota-exceeded': {
    status: 429,
    title,
    detail: 'The plan allows no more persisted vaults.',
    causes: [
      'The organisation has as many persisted vaults as the plan includes; a persisted vault counts until it is deleted.',
    ],
    fix: 'Delete a persisted vault (`GET /vaults?status=persisted` lists those that are not sealed), extend this one with `POST /vaults/{id}/extend` instead of persisting it, or raise the plan at `upgradeUrl`.',
  },
  'documents-per-vault-exceeded': {
    status: 422,
    title,
    detail: 'The plan allows no more documents in a vault.',
    causes: [
      'The vault has as many documents as the plan includes per vault (50 on hobby). Documents cannot be removed.',
    ],
    fix: 'Write into another vault, put several records into one document, or raise the plan at `upgradeUrl`.',
  },
  'files-per-vault-exceeded': {
    status: 422,
    title,
    detail: 'The plan allows no more files in a vault.',
    causes: ['The vault has as many files as the plan includes per vault (`limit`).'],
    fix: 'Delete a file of the vault (`DELETE /vaults/{id}/files/{fileId}`, while it is not sealed), pack several into one archive, or raise the plan at `upgradeUrl`.',
  },
  'storage-quota-exceeded': {
    status: 429,
    title,
    detail: 'The plan has too little storage for this. Delete files or vaults first.',
    causes: [
      'The documents, events and files of all vaults together, with what this request adds, take more bytes than the plan includes. `limit` and `current` are bytes.',
    ],
    fix: 'Delete vaults or files; their bytes are free at once. `GET /billing/usage` shows `storageBytes`. Or raise the plan at `upgradeUrl`.',
  },
})

/** Errors of operations that reserve the operator's gas. */
export const gasErrors = {
  'settlement-budget-exceeded': {
    status: 429,
    title: 'Settlement Budget Exceeded',
    detail: 'The daily gas budget on the network is used up. It is renewed at 00:00 UTC.',
    causes: [
      'The gas that the operator pays for this organisation on this network has reached the budget of the UTC day (`SETTLE_MICRO_USD_PER_DAY_MAX`), which the hobby organisations of an account share. Payments that are verified and not settled reserve a part.',
      'Gas prices rose, so that each settlement reserves more.',
    ],
    fix: 'Settle open payments or let them expire, which releases their reservations; offer a wallet on a cheaper network in `otherWalletIds`; or wait for 00:00 UTC. The operator raises the setting. The credential was not used and may be verified later.',
  },
} as const

/** The limit errors, for the tables of the operations that count. */
export const planErrors = fail.table

/**
 * Returns the plan's limit error: a problem record with `limit`, `current` and `upgradeUrl`; its detail contains the figures
 * too.
 */
export function limitError(
  ctx: Pick<Deps, 'upgradeUrl'>,
  code: keyof typeof planErrors,
  { limit, current, detail }: { readonly limit: number; readonly current: number; readonly detail?: string },
): Problem {
  const unit = code === 'storage-quota-exceeded' ? ' bytes' : ''
  const used = `${fail.table[code].detail.slice(0, -1)}: ${current} of ${limit}${unit} used.`
  return fail(code, { detail: detail ?? used, limit, current, upgradeUrl: ctx.upgradeUrl })
}
