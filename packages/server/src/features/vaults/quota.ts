import { sealLimits } from '@purser/protocol'
import type { Ctx, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import {
  addToCounter,
  limitError,
  listCounters,
  lockCounter,
  monthOf,
  type Plan,
  periodOf,
  quotas,
  reportThresholds,
  type UsageKind,
  unlimited,
  usageOf,
} from '../plans/index.ts'
import { fail } from './errors.ts'
import { countLapsed, countUnpaid } from './lapse-store.ts'
import type { VaultQuota } from './schema.ts'
import type { VaultRow } from './store.ts'
import { isGone } from './vault.ts'

type Limits = Pick<Ctx, 'tenant' | 'clock' | 'upgradeUrl' | 'publish'>
type VaultKind = Extract<UsageKind, 'activeVaults' | 'persistedVaults' | 'storageBytes'>

/** In the order in which everybody locks them. */
const vaultKinds = ['activeVaults', 'persistedVaults', 'storageBytes'] as const satisfies readonly VaultKind[]

export interface Taken {
  readonly kind: VaultKind
  readonly count: number
}

/**
 * Counts more of a kind in the transaction that makes it, or refuses with the document's limit error. Vaults of payments that nobody has asked to
 * settle are in the counter and keep no other out, because they cost a stranger nothing. What belongs to
 * vaults that are gone but not swept is still in the counter and does not stand in the way: it is taken off before
 * anybody is refused, exactly, since whoever sweeps needs the counter that is held here. No vault row is asked for under
 * it, which could lock up.
 */
export async function takeOrRefuse(tx: Tx, ctx: Limits, plan: Plan, { kind, count }: Taken): Promise<void> {
  const now = ctx.clock.now()
  const period = periodOf(kind, now)
  const limit = quotas[kind].limitOf(plan)
  if (limit === unlimited) return addToCounter(tx, ctx.tenant, kind, period, count)
  const used = await lockCounter(tx, ctx.tenant, kind, period)
  const exact = async () => used + count - (await notCounted(tx, ctx.tenant, kind, now))
  if (used + count > limit) {
    const wanted = await exact()
    if (wanted > limit) throw limitError(ctx, quotas[kind].code, limit, wanted - count)
  }
  await addToCounter(tx, ctx.tenant, kind, period, count)
  await reportThresholds(tx, ctx, { kind, limit, used: used + count, exact })
}

/** Holds the counter of storage until the transaction ends and answers what is used, without what is gone and not swept. */
export async function holdStorage(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>): Promise<number> {
  const now = ctx.clock.now()
  const used = await lockCounter(tx, ctx.tenant, 'storageBytes', periodOf('storageBytes', now))
  return used - (await notCounted(tx, ctx.tenant, 'storageBytes', now))
}

async function notCounted(db: Queryable, tenant: Tenant, kind: VaultKind, now: Date): Promise<number> {
  if (kind === 'persistedVaults') return 0
  const lapsed = await countLapsed(db, tenant, now)
  return kind === 'activeVaults' ? lapsed.vaults + (await countUnpaid(db, tenant, now)) : lapsed.bytes
}

/**
 * Holds the counters in which a vault that is to live past its present end has its place, so that nobody is given that place when the
 * end comes meanwhile. Throws where it came while they were waited for: by then the place may be another's.
 */
export async function holdPlace(tx: Tx, ctx: Pick<Ctx, 'tenant' | 'clock'>, vault: VaultRow): Promise<void> {
  for (const kind of vaultKinds) await lockCounter(tx, ctx.tenant, kind, periodOf(kind, ctx.clock.now()))
  if (isGone(vault, ctx.clock.now())) throw fail('vault-not-found')
}

/** Gives counts back. */
export async function giveBack(
  tx: Tx,
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  given: Readonly<Partial<Record<VaultKind, number>>>,
): Promise<void> {
  const now = ctx.clock.now()
  for (const kind of vaultKinds) {
    const count = given[kind] ?? 0
    if (count !== 0) await addToCounter(tx, ctx.tenant, kind, periodOf(kind, now), -count)
  }
}

/** Refuses when the month's payments are used up: who can sell nothing more needs no vault more. */
export async function refuseWithoutPayments(tx: Tx, ctx: Limits, plan: Plan): Promise<void> {
  const limit = plan.paymentsPerMonth
  if (limit === unlimited) return
  const counters = await listCounters(tx, ctx.tenant, monthOf(ctx.clock.now()))
  const current = counters.get('payments') ?? 0
  if (current >= limit) throw limitError(ctx, 'payment-limit-reached', limit, current)
}

/** Refuses one more of what a single vault has a limit for. */
export function refuseOver(
  ctx: Pick<Ctx, 'upgradeUrl'>,
  code: 'documents-per-vault-exceeded' | 'files-per-vault-exceeded',
  limit: number,
  current: number,
): void {
  if (limit !== unlimited && current >= limit) throw limitError(ctx, code, limit, current)
}

/** Refuses what would make a vault that no seal can hold, whatever the plan grants. */
export function refuseUnsealable(
  ctx: Pick<Ctx, 'upgradeUrl'>,
  code: 'documents-per-vault-exceeded' | 'files-per-vault-exceeded',
  { documentCount, fileCount }: Pick<VaultRow, 'documentCount' | 'fileCount'>,
): void {
  refuseOver(ctx, code, sealLimits.itemsMax, documentCount + fileCount)
}

/** What is used and what the plan grants. A vault past its end counts no more, swept or not. */
export async function getVaultQuota(ctx: Ctx): Promise<VaultQuota> {
  const { figureOf } = await usageOf(ctx)
  return {
    active: figureOf('activeVaults'),
    persisted: figureOf('persistedVaults'),
    storageBytes: figureOf('storageBytes'),
  }
}
