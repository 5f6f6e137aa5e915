import { requireNetwork } from '@purser/protocol'
import type { z } from 'zod'
import { instantOf, utcMonthOf } from '../../platform/clock.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { gasLeft, planOf, usedOf } from '../plans/index.ts'
import { fail, failBody, releasedTooMany } from './errors.ts'
import {
  countOfPayer,
  type EvictableRow,
  type ExhaustedQuota,
  findToRelease,
  listEvictable,
  lockVerified,
  type OpenRow,
} from './eviction-store.ts'
import { getPayment, refusePayment } from './logs.ts'
import { gasReservedBy } from './new-payment.ts'
import type { Candidate, Ctx } from './ports.ts'
import type { Payment, ReleaseRequest } from './schema.ts'
import { recordFailed } from './settlement-outcome.ts'
import { setCheckAt } from './settlement-store.ts'
import type { NewPayment } from './store.ts'
import type { FreedQuota } from './unmined-payments.ts'
import { nextCheckOf } from './void.ts'

/** A payment younger than this, in milliseconds, is never evicted. */
const protectedMs = 120_000
/** As `protectedMs`, for a payment whose payer has an older open payment. */
const protectedSurplusMs = 10_000
/** Most payments that are evicted for one. Their gas may be less than it needs. */
const evictedMax = 20
/** As `evictedMax`, if pushes were counted above the limit or blocks cost more than was reserved, which must become free too. */
const evictedOverLimitMax = 10_000
/** Most payments that one transaction voids. */
const evictedPerTransactionMax = 500

/**
 * Voids a payment that the caller will not settle. It no longer counts in the month, and its gas is released. Nothing was sent for it. The chain is read
 * until its signature ends, as for every voided payment. Repeating it changes nothing. Above the day's allowance the payment stays open.
 */
export async function releasePayment(
  ctx: Ctx,
  paymentId: PaymentId,
  { settlementToken }: ReleaseRequest,
): Promise<z.input<typeof Payment>> {
  const open = await findToRelease(ctx.db, ctx.tenant, paymentId)
  if (open === undefined) return refusePayment(ctx.db, ctx.tenant, paymentId, fail('payment-not-found'))
  if (!ctx.settlementTokens.check(paymentId, settlementToken)) throw failBody('settlement-token-invalid')
  const { status, validBefore } = open
  if (status === 'verified' && validBefore !== null) {
    const retryAfterSeconds = ctx.releaseLimit.waitOf(ctx)
    if (retryAfterSeconds !== undefined)
      throw failPlatform('rate-limit-exceeded', { detail: releasedTooMany, retryAfterSeconds })
    const voided = await ctx.db.tx((tx) => voidOpen(ctx, tx, [{ ...open, validBefore }], 'released'))
    if (voided.size > 0) ctx.releaseLimit.count(ctx, await planOf(ctx.db, ctx.tenant.organisationId), open.payer)
  }
  const payment = await getPayment(ctx, paymentId)
  if (payment.status !== 'voided' && payment.status !== 'settlement_failed') throw fail('payment-in-settlement')
  return payment
}

/**
 * Voids as many open payments as another payment needs: the oldest that were verified two minutes ago or earlier, or else further payments of the
 * payers with the most. A payment whose settlement was requested is never evicted. Evictions do not count toward the limit on releases.
 */
export async function evictOpenPayments({ ctx, payment }: Candidate, exhausted: ExhaustedQuota): Promise<FreedQuota> {
  const needed = await neededBy(ctx, payment, exhausted)
  const oldest = await voidOldest(ctx, { payment, exhausted }, needed)
  if (oldest === 'some') return oldest
  const surplus = await voidSurplus(ctx, { payment, exhausted }, needed)
  if (surplus === 'some') return surplus
  // What another transaction is voiding would have sufficed, so that it is not too little: the next attempt finds what is left.
  return oldest === 'locked' || surplus === 'locked' ? 'none' : surplus
}

/** `locked`: what would suffice is locked by other transactions, such as those of another process that voids it. */
type Voided = FreedQuota | 'locked'

interface EvictionRequest {
  readonly payment: NewPayment
  readonly exhausted: ExhaustedQuota
}

/** Voids the oldest payments that were verified two minutes ago or earlier. */
async function voidOldest(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics' | 'tenant'>,
  { payment, exhausted }: EvictionRequest,
  { own, above }: Needed,
): Promise<Voided> {
  const until = instantOf(ctx.clock.now().getTime() - protectedMs)
  const needed = own + above
  for (const most of above > 0n ? [evictedPerTransactionMax, evictedOverLimitMax] : [evictedMax]) {
    const open = await listEvictable(ctx.db, ctx.tenant, payment, { exhausted, until, most })
    if (freedBy(open) >= needed) return voidUntil(ctx, open, needed)
    if (open.length < most) return open.length === 0 ? 'none' : 'too-little'
  }
  return 'too-little'
}

/**
 * Voids further payments of payers that have several, verified ten seconds ago or earlier, until no payer with more than the new payment's payer is left:
 * those of the payers with the most first. The first payment of each payer stays.
 */
async function voidSurplus(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics' | 'tenant'>,
  { payment, exhausted }: EvictionRequest,
  { own, above }: Needed,
): Promise<Voided> {
  const until = instantOf(ctx.clock.now().getTime() - protectedSurplusMs)
  const open = await listEvictable(ctx.db, ctx.tenant, payment, { exhausted, until, most: evictedPerTransactionMax })
  if (open.length === 0) return 'none'
  const needed = own + above
  if (freedBy(surplusOf(open, 1)) < needed) return 'too-little'
  const surplus = surplusOf(open, 1 + (await countOfPayer(ctx.db, ctx.tenant, payment, exhausted)))
  return freedBy(surplus) < needed ? 'too-little-for-payer' : voidUntil(ctx, surplus, needed)
}

/** Returns the payments of each payer beyond its first `kept`, from the payers with the most first. */
function surplusOf(open: readonly EvictableRow[], kept: number): readonly EvictableRow[] {
  const byPayer = Map.groupBy(open, ({ payer }) => payer)
  const ranked = [...byPayer.values()].flatMap((rows) => rows.map((row, place) => ({ row, place })).slice(kept))
  return ranked.toSorted((one, other) => other.place - one.place).map(({ row }) => row)
}

/** Voids the first of these payments that free what is needed. Those that another transaction has locked are left out. */
async function voidUntil(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics'>,
  open: readonly EvictableRow[],
  needed: bigint,
): Promise<'some' | 'locked'> {
  let freed = 0n
  for (let next = 0; freed < needed && next < open.length; ) {
    const step = firstFreeing(open.slice(next, next + evictedPerTransactionMax), needed - freed)
    next += step.length
    const voided = await ctx.db.tx(async (tx) => voidOpen(ctx, tx, await lockVerified(tx, step), 'not_settled_in_time'))
    freed += freedBy(step.filter(({ id }) => voided.has(id)))
  }
  return freed > 0n ? 'some' : 'locked'
}

function freedBy(rows: readonly EvictableRow[]): bigint {
  return rows.reduce((sum, { frees }) => sum + frees, 0n)
}

/** Returns the first rows that free what is needed; all of them if they free less. */
function firstFreeing(rows: readonly EvictableRow[], needed: bigint): readonly EvictableRow[] {
  let freed = 0n
  const last = rows.findIndex(({ frees }) => {
    freed += frees
    return freed >= needed
  })
  return last === -1 ? rows : rows.slice(0, last + 1)
}

interface Needed {
  readonly own: bigint
  readonly above: bigint
}

/** Returns how much of the month's count or the day's gas must become free for a payment: its own need, and the use above the limit. */
async function neededBy(
  ctx: Pick<Ctx, 'clock' | 'db' | 'gasPrices' | 'settleNanoUsdPerDayMax' | 'tenant'>,
  payment: NewPayment,
  exhausted: ExhaustedQuota,
): Promise<Needed> {
  if (exhausted === 'gas-budget') {
    const left = await gasLeft(ctx, requireNetwork(payment.network))
    return { own: gasReservedBy(ctx, payment), above: left < 0n ? -left : 0n }
  }
  const { paymentsPerMonth } = await planOf(ctx.db, ctx.tenant.organisationId)
  const used = await usedOf(ctx.db, ctx.tenant, 'payments', utcMonthOf(payment.createdAt))
  return { own: 1n, above: BigInt(Math.max(0, used - paymentsPerMonth)) }
}

/** Voids those of the payments that are still verified, and returns their ids. */
async function voidOpen(
  ctx: ActingCtx & Pick<Ctx, 'metrics'>,
  tx: Tx,
  open: readonly OpenRow[],
  reason: string,
): Promise<ReadonlySet<string>> {
  if (open.length === 0) return new Set()
  const failed = open.map(({ id }) => ({ id, status: 'voided', reason }) as const)
  const voided = await recordFailed(ctx, tx, failed, 'verified')
  const watched = open.filter(({ id }) => voided.has(id))
  await setCheckAt(
    tx,
    watched.map((row) => ({ id: row.id, checkAt: nextCheckOf(ctx, row) })),
  )
  return voided
}
