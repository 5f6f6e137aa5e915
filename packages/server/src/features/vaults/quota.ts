import { sealLimits } from '@purser/protocol'
import { utcMonthOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import {
  addToCounter,
  limitError,
  lockCounter,
  type Plan,
  periodOf,
  quotas,
  type Recount,
  reportThresholds,
  sharersWith,
  type UsageKind,
  unlimited,
  usageOf,
  usedOf,
} from '../plans/index.ts'
import { countingVaults, summingBytes } from './count-store.ts'
import { fail } from './errors.ts'
import { countExpired, countUnpaid } from './expiry-store.ts'
import type { Ctx } from './ports.ts'
import type { VaultQuota } from './schema.ts'
import type { VaultRow } from './store.ts'
import { isExpired } from './vault.ts'

type Limits = Pick<Ctx, 'tenant' | 'clock' | 'upgradeUrl' | 'publish'>
type VaultKind = Extract<UsageKind, 'activeVaults' | 'persistedVaults' | 'storageBytes'>

/** In the order in which they are locked everywhere. */
const vaultKinds = ['activeVaults', 'persistedVaults', 'storageBytes'] as const satisfies readonly VaultKind[]

export interface Taken {
  readonly kind: VaultKind
  readonly count: number
}

/**
 * Counts more of a kind in the transaction that creates it, or refuses with the plan's limit error. Vaults whose payments have no settlement
 * request are in the counter but block no others, because they cost the payer nothing. Contents of expired vaults are in the counter until they are
 * swept and are subtracted before anything is refused; the figure is exact, because the sweep of expired vaults takes the same counter lock. No vault
 * row is locked under the counter, because that could deadlock.
 */
export async function reserveQuota(tx: Tx, ctx: Limits, plan: Plan, { kind, count }: Taken): Promise<void> {
  const batch = quotaBatchOf(tx, ctx, plan, kind)
  await batch.reserve(count)
  await batch.commit()
  await batch.report()
}

/** Counts several things of a kind in one transaction: each is reserved or refused, and then all reserved ones are counted. */
export interface QuotaBatch {
  /** Reserves or refuses one of them, as `reserveQuota` does. */
  reserve(count: number): Promise<void>
  /** Adds all that was reserved to the counter, by one statement. */
  commit(): Promise<void>
  /** Reports a share of the quota that the counter reached. */
  report(): Promise<void>
}

export function quotaBatchOf(tx: Tx, ctx: Limits, plan: Plan, kind: VaultKind): QuotaBatch {
  const now = ctx.clock.now()
  const period = periodOf(kind, now)
  const limit = quotas[kind].allowanceOf(plan)
  let taken = 0
  let usedBefore: number | undefined
  let gone: number | undefined
  /** The use with `count` more, without what has expired and is not swept. */
  const exact = async (count: number): Promise<number> => {
    gone ??= await notCounted(tx, ctx.tenant, kind, now)
    return (usedBefore ?? 0) + taken + count - gone
  }
  return {
    async reserve(count) {
      if (limit !== unlimited) {
        usedBefore ??= await lockCounter(tx, ctx.tenant, kind, period)
        const wanted = usedBefore + taken + count > limit ? await exact(count) : 0
        if (wanted > limit) throw limitError(ctx, quotas[kind].code, { limit, current: wanted - count })
      }
      taken += count
    },
    commit: () => addToCounter(tx, { tenant: ctx.tenant, kind, period, n: taken }),
    async report() {
      if (usedBefore === undefined) return
      await reportThresholds(tx, ctx, { kind, limit, used: usedBefore + taken, exact: () => exact(0) })
    },
  }
}

/**
 * Locks the counter of storage until the transaction ends and returns what is used, without what has expired and is not swept.
 */
export async function lockStorage(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>): Promise<number> {
  const now = ctx.clock.now()
  const used = await lockCounter(tx, ctx.tenant, 'storageBytes', periodOf('storageBytes', now))
  return used - (await notCounted(tx, ctx.tenant, 'storageBytes', now))
}

/**
 * Returns how much of the counters does not count toward the quota, over all organisations that share it: expired vaults (or their bytes), and vaults
 * of unsettled payments.
 */
async function notCounted(db: Queryable, tenant: Tenant, kind: VaultKind, now: Date): Promise<number> {
  if (kind === 'persistedVaults') return 0
  const sharers = await sharersWith(db, tenant)
  const expired = await countExpired(db, sharers, now)
  return kind === 'activeVaults' ? expired.vaults + (await countUnpaid(db, sharers, now)) : expired.bytes
}

/**
 * Locks the counters of a vault before its expiry is changed, so that no other vault takes its place in the quota if it expires meanwhile. Throws if
 * it expired while waiting for the locks.
 */
export async function lockCounters(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>, vault: VaultRow): Promise<void> {
  for (const kind of vaultKinds) await lockCounter(tx, ctx.tenant, kind, periodOf(kind, ctx.clock.now()))
  if (isExpired(vault, ctx.clock.now())) throw fail('vault-not-found')
}

/** Subtracts counts. */
export async function releaseCounts(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  given: Readonly<Partial<Record<VaultKind, number>>>,
): Promise<void> {
  const now = ctx.clock.now()
  for (const kind of vaultKinds) {
    const count = given[kind] ?? 0
    if (count !== 0) await addToCounter(tx, { tenant: ctx.tenant, kind, period: periodOf(kind, now), n: -count })
  }
}

/** Refuses when the month's payments are used up. */
export async function refuseWithoutPayments(tx: Tx, ctx: Limits, plan: Plan): Promise<void> {
  const limit = plan.paymentsPerMonth
  if (limit === unlimited) return
  const current = await usedOf(tx, ctx.tenant, 'payments', utcMonthOf(ctx.clock.now()))
  if (current >= limit) throw limitError(ctx, 'payment-limit-reached', { limit, current })
}

/** Refuses one more item than a single vault may have. */
export function refuseOver(
  ctx: Pick<Ctx, 'upgradeUrl'>,
  code: 'documents-per-vault-exceeded' | 'files-per-vault-exceeded',
  limit: number,
  current: number,
): void {
  if (limit !== unlimited && current >= limit) throw limitError(ctx, code, { limit, current })
}

/** Refuses an item that would make the vault too large for a seal, whatever the plan grants. */
export function refuseUnsealable(
  ctx: Pick<Ctx, 'upgradeUrl'>,
  code: 'documents-per-vault-exceeded' | 'files-per-vault-exceeded',
  { documentCount, fileCount }: Pick<VaultRow, 'documentCount' | 'fileCount'>,
): void {
  const [limit, current] = [sealLimits.itemsMax, documentCount + fileCount]
  if (current < limit) return
  const detail = `A vault takes at most ${limit} documents and files, on every plan. Use another vault.`
  throw limitError(ctx, code, { limit, current, detail })
}

/** Returns the used amounts and the plan's limits. An expired vault does not count, whether or not it has been deleted. */
export async function getVaultQuota(ctx: Pick<Ctx, 'clock' | 'db' | 'recounts' | 'tenant'>): Promise<VaultQuota> {
  const { figureOf } = await usageOf(ctx)
  return {
    active: figureOf('activeVaults'),
    persisted: figureOf('persistedVaults'),
    storageBytes: figureOf('storageBytes'),
  }
}

/** Recounts what this feature counts. An expired vault counts until it is swept, here as in the counters. */
export const vaultRecounts: readonly Recount[] = [
  {
    kind: 'activeVaults',
    counting: (tenant) => countingVaults(tenant, 'active'),
    gone: async (db, sharers, now) =>
      (await countExpired(db, sharers, now)).vaults + (await countUnpaid(db, sharers, now)),
  },
  { kind: 'persistedVaults', counting: (tenant) => countingVaults(tenant, 'persisted') },
  {
    kind: 'storageBytes',
    counting: (tenant) => summingBytes(tenant),
    gone: async (db, sharers, now) => (await countExpired(db, sharers, now)).bytes,
  },
]
