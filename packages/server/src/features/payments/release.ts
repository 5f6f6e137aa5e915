import { requireNetwork } from '@purser/protocol'
import type { z } from 'zod'
import { instantOf, utcMonthOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { gasLeft, planOf, usedOf } from '../plans/index.ts'
import { fail, failBody, releasedTooMany } from './errors.ts'
import { getPayment, refusePayment } from './logs.ts'
import { gasReservedBy } from './new-payment.ts'
import type { Candidate, Ctx } from './ports.ts'
import { findToRelease, type Lacking, lockInTheWay, type OpenRow } from './release-store.ts'
import type { Payment, ReleaseRequest } from './schema.ts'
import { recordFailed } from './settlement-outcome.ts'
import { setCheckAt } from './settlement-store.ts'
import type { NewPayment } from './store.ts'
import { nextCheckOf } from './void.ts'

/** How long an open payment keeps its place, whatever else needs it, in milliseconds. */
const firmMs = 120_000
/** Most payments that give way to one. Their gas may be less than it needs. */
const givingWayMax = 20
/** Most of them where pushes were counted above the limit, or blocks cost more than was reserved: those that give way free that too. */
const givingWayAboveMax = 500

/**
 * Voids a payment that the caller will not settle, which releases its place in the month and its gas at once. Nothing was sent for it. The chain is read
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
    const retryAfterSeconds = ctx.unsold.waitOf(ctx)
    if (retryAfterSeconds !== undefined)
      throw failPlatform('rate-limit-exceeded', { detail: releasedTooMany, retryAfterSeconds })
    const voided = await ctx.db.tx((tx) => voidOpen(ctx, tx, [{ ...open, validBefore }], 'released'))
    if (voided > 0) ctx.unsold.count(ctx, await planOf(ctx.db, ctx.tenant.organisationId), open.payer)
  }
  const payment = await getPayment(ctx, paymentId)
  if (payment.status !== 'voided' && payment.status !== 'settlement_failed') throw fail('payment-in-settlement')
  return payment
}

/**
 * Voids open payments that have been verified for two minutes and whose places suffice for another payment: the oldest, and no more of them than it needs.
 * Returns whether it voided any. A payment whose settlement was requested never gives way. No allowance counts them: the two minutes bound them to a month's count
 * in each.
 */
export async function giveWay({ ctx, payment }: Candidate, lacking: Lacking): Promise<boolean> {
  const until = instantOf(ctx.clock.now().getTime() - firmMs)
  const { own, above } = await neededBy(ctx, payment, lacking)
  const most = above > 0n ? givingWayAboveMax : givingWayMax
  return ctx.db.tx(async (tx) => {
    const open = await lockInTheWay(tx, ctx.tenant, payment, { lacking, needed: own + above, until, most })
    return (await voidOpen(ctx, tx, open, 'not_settled_in_time')) > 0
  })
}

interface Needed {
  readonly own: bigint
  readonly above: bigint
}

/** Returns the places of the month or the gas of the day that must be free for a payment: its own, and what was taken above the limit. */
async function neededBy(ctx: Ctx, payment: NewPayment, lacking: Lacking): Promise<Needed> {
  if (lacking === 'gas-budget') {
    const left = await gasLeft(ctx, requireNetwork(payment.network))
    return { own: gasReservedBy(ctx, payment), above: left < 0n ? -left : 0n }
  }
  const { paymentsPerMonth } = await planOf(ctx.db, ctx.tenant.organisationId)
  const used = await usedOf(ctx.db, ctx.tenant, 'payments', utcMonthOf(payment.createdAt))
  return { own: 1n, above: BigInt(Math.max(0, used - paymentsPerMonth)) }
}

/** Voids those of the payments that are still verified, and returns how many it voided. */
async function voidOpen(ctx: Ctx, tx: Tx, open: readonly OpenRow[], reason: string): Promise<number> {
  if (open.length === 0) return 0
  const failed = open.map(({ id }) => ({ id, status: 'voided', reason }) as const)
  const voided = await recordFailed(ctx, tx, failed, 'verified')
  const watched = open.filter(({ id }) => voided.has(id))
  await setCheckAt(
    tx,
    watched.map((row) => ({ id: row.id, checkAt: nextCheckOf(ctx, row) })),
  )
  return voided.size
}
