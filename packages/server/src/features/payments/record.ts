import { formatAmount, isTempo, requireNetwork } from '@purser/protocol'
import type { z } from 'zod'
import { instantOf, utcMonthOf } from '../../platform/clock.ts'
import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { lockNameOfText } from '../../platform/db/lock-name.ts'
import { isProblem } from '../../platform/errors.ts'
import { unauthorized } from '../../platform/http/authenticate.ts'
import { newId, type PaymentId } from '../../platform/ids.ts'
import {
  gasLockName,
  limitError,
  lockCounter,
  paymentsLockName,
  planOf,
  plans,
  reportThresholds,
  unlimited,
  usedOf,
} from '../plans/index.ts'
import { refused, refuseSanctioned } from './credential.ts'
import { fail, refusedMpp, releasedTooOften } from './errors.ts'
import type { ExhaustedQuota } from './eviction-store.ts'
import { type Attempt, oneAtATime, pauseAfterShortage } from './eviction-throttle.ts'
import { readFunds } from './funds.ts'
import { sentenceOf } from './methods/mpp-tempo/follow.ts'
import { expiredReasonOf, gasReservedBy, paymentPayload } from './new-payment.ts'
import type { Candidate, Ctx, Deps } from './ports.ts'
import { beginRecording, insertPayments, type PaymentToRecord, type RecordVerdict } from './record-store.ts'
import { evictOpenPayments } from './release.ts'
import type { VerifiedPayment } from './schema.ts'
import { findPayment, type NewPayment, type PaymentRow } from './store.ts'
import { type FreedQuota, freeQuotaOfUnmined, unminedMs } from './unmined-payments.ts'

/** Limits of the deployment that recording applies. */
export interface RecordLimits {
  readonly nanoUsdPerDayMax: bigint
  readonly openPerPayerMax: number
  /** Milliseconds for which a payment stays open if nobody requests settlement. */
  readonly verifiedMsMax: number
}

/** Most open payments of one payer at one organisation. */
export const openPerPayerMax = 100
/** More payments are recorded in parts of at least so many by a process with time to spare: the first are accepted while the others are recorded. */
const halvedAbove = 16
/** Most attempts to free the quota that a payment exceeds: another payment, which had no need to free any, may take it first. */
const triesMax = 3
/** Most tenants whose batches a process keeps; above it the map is cleared, which only splits a batch. */
const recordersMax = 10_000

type Outcome = RecordVerdict | Error
type Free = (candidate: Candidate, exhausted: ExhaustedQuota) => Promise<FreedQuota>

/**
 * Records verified payments whose parties are not sanctioned. Payments of concurrent requests share a batch, one batch of a
 * tenant at a time because they share its count. One transaction contains the rows, their events, the month's count, the gas
 * budget and the callers' idempotency keys. The unique claim refuses a credential that was used before as a duplicate, also if
 * another caller used it.
 */
export function createRecorder(
  deps: Pick<Deps, 'db'>,
  limits: RecordLimits,
  hasSpareTime: () => boolean = () => false,
): (candidate: Candidate) => Promise<void> {
  const batchLimits = { itemsMax: 128, batchesMax: 1, halved: { above: halvedAbove, hasSpareTime } }
  const recorders = new Map<string, (candidate: Candidate) => Promise<Outcome>>()
  const ways = [
    { free: freeQuotaOfUnmined, attempt: pauseAfterShortage<Outcome>() },
    { free: evictOpenPayments, attempt: oneAtATime(pauseAfterShortage<Outcome>()) },
  ]
  const recorderOf = ({ tenant }: Pick<Ctx, 'tenant'>) => {
    const key = `${tenant.organisationId}/${tenant.environment}`
    const known = recorders.get(key)
    if (known !== undefined) return known
    if (recorders.size >= recordersMax) recorders.clear()
    const made = batch<Candidate, Outcome>(batchLimits, (candidates) => recordOrFail(deps.db, candidates, limits))
    recorders.set(key, made)
    return made
  }
  return async (candidate) => {
    const { ctx, payment, funds } = candidate
    refuseSanctioned(ctx, payment)
    refuseReleased(ctx, payment)
    const record = recorderOf(ctx)
    let outcome = await record(candidate)
    if (outcome === 'insufficient-funds' && funds !== undefined)
      return refuse(candidate, await record({ ctx, payment, funds: await readFunds(ctx, payment) }))
    for (const { free, attempt } of ways)
      for (let tries = 0; tries < triesMax; tries += 1) {
        if (isProof(payment) || (outcome !== 'plan-limit' && outcome !== 'gas-budget')) break
        const again = await attempt({ ...attemptOf(candidate, outcome, free), record: () => record(candidate) })
        if (again === undefined) break
        outcome = again
      }
    await refuse(candidate, outcome)
  }
}

/** Returns the attempt to free the quota that a payment exceeds: one payment of the month, or as much gas as the payment may cost. */
function attemptOf(candidate: Candidate, exhausted: ExhaustedQuota, free: Free): Omit<Attempt<Outcome>, 'record'> {
  const { ctx, payment } = candidate
  const { organisationId, environment } = ctx.tenant
  return {
    name: `${organisationId}/${environment}/${exhausted}/${payment.network}`,
    payer: payment.payer,
    own: exhausted === 'gas-budget' ? gasReservedBy(ctx, payment) : 1n,
    nowMs: ctx.clock.now().getTime(),
    free: () => free(candidate, exhausted),
  }
}

/** Refuses a payer whose payments here were released too often: each release leaves rows that no plan counts. */
function refuseReleased(ctx: Pick<Ctx, 'releaseLimit' | 'shareOwner' | 'tenant'>, { status, payer }: NewPayment): void {
  if (status !== 'verified' || payer === null) return
  const retryAfterSeconds = ctx.releaseLimit.waitOfPayer(ctx, payer)
  if (retryAfterSeconds !== undefined)
    throw fail('too-many-open-payments', { detail: releasedTooOften, retryAfterSeconds })
}

/**
 * Records a batch. If the database refuses a row, only that row fails: the others are recorded one by one. The same applies to
 * batches of two processes that deadlock.
 */
async function recordOrFail(db: Db, group: readonly Candidate[], limits: RecordLimits): Promise<readonly Outcome[]> {
  try {
    return await db.tx((tx) => recordBatch(tx, group, limits))
  } catch (error) {
    if (group.length > 1 && (isRefusedData(error) || isDeadlock(error))) {
      return (await Promise.all(group.map((candidate) => recordOrFail(db, [candidate], limits)))).flat()
    }
    return group.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function refuse(candidate: Candidate, outcome: Outcome): Promise<void> {
  if (outcome instanceof Error) throw outcome
  if (outcome === 'organisation-deleted') throw unauthorized('the organisation was deleted')
  if (outcome === 'duplicate') throw fail('duplicate-payment')
  if (outcome === 'gas-budget') throw fail('settlement-budget-exceeded')
  if (outcome === 'too-many-open') throw fail('too-many-open-payments')
  if (outcome === 'insufficient-funds') throw shortOfFunds(candidate.payment)
  if (outcome === 'plan-limit') throw await limitReached(candidate)
}

/**
 * Refuses a payer with too little money. The message does not depend on which open payments the payer has where, so
 * that it discloses nothing about other organisations.
 */
function shortOfFunds({ protocol, payer }: NewPayment): Error {
  return protocol === 'mpp'
    ? refusedMpp('verification-failed', 'The authorization was refused: insufficient_funds.', { payer })
    : refused('insufficient_funds', { payer })
}

/** Returns the 429 of the plan's monthly count, with the present figures. */
async function limitReached({ ctx, payment }: Candidate): Promise<Error> {
  return ctx.db.tx(async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const month = utcMonthOf(ctx.clock.now())
    const current = isProof(payment)
      ? await usedOf(tx, ctx.tenant, 'proofs', month)
      : await lockCounter(tx, ctx.tenant, 'payments', month)
    return limitError(ctx, 'payment-limit-reached', { limit: plan.paymentsPerMonth, current })
  })
}

/** Whether the payment is a proof, which pays a price of zero and has a count of its own. */
function isProof({ status, rawAmount, payer }: NewPayment): boolean {
  return status === 'settled' && rawAmount === 0n && payer !== null
}

async function recordBatch(tx: Tx, group: readonly Candidate[], limits: RecordLimits): Promise<RecordVerdict[]> {
  const [first] = group
  if (first === undefined) return []
  const { ctx } = first
  const candidates = withoutCopies(group)
  // Sent together: the server executes the second statement when the first has its locks.
  const [plan, { verdicts, haveSubscribers }] = await Promise.all([
    beginRecording(tx, ctx.tenant, [...new Set(candidates.flatMap(lockNamesOf))]),
    insertPayments(
      tx,
      ctx.tenant,
      candidates.map((candidate) => receiptOf(candidate, limits)),
      {
        ...limits,
        spentIds: group.flatMap(({ funds }) => funds?.spentIds ?? []),
        createdAt: ctx.clock.now(),
        unminedMs,
      },
    ),
  ])
  const made = candidates.filter(({ payment }) => verdicts.get(payment.id) === 'recorded')
  if (made.length > 0) tx.afterCommit(() => ctx.eventsCommitted?.({ haveSubscribers }))
  await commitKeys(tx, made)
  if (made.length > 0) await reportPaymentsUsed(tx, ctx, plans[plan].paymentsPerMonth)
  return group.map(({ payment }) => verdicts.get(payment.id) ?? 'duplicate')
}

/**
 * Reports the use of the monthly quota. The batch has the lock of the quota, so that nobody else counts meanwhile.
 */
async function reportPaymentsUsed(
  tx: Tx,
  ctx: Pick<Ctx, 'clock' | 'publish' | 'tenant'>,
  limit: number,
): Promise<void> {
  if (limit === unlimited) return
  const used = await usedOf(tx, ctx.tenant, 'payments', utcMonthOf(ctx.clock.now()))
  await reportThresholds(tx, ctx, { kind: 'payments', limit, used })
}

/** Removes copies that arrived together: only the first can be recorded, and the others must not use up the quota. */
function withoutCopies(group: readonly Candidate[]): readonly Candidate[] {
  const seen = new Set<string>()
  return group.filter(({ payment }) => {
    const names = [payment.claimKey, payment.challengeId, tempoNonceOf(payment)].filter((name) => name !== null)
    if (names.some((name) => seen.has(name))) return false
    for (const name of names) seen.add(name)
    return true
  })
}

/**
 * Returns the locks that a batch needs: another batch may read and take from the same budgets only after this one has committed.
 */
function lockNamesOf({ ctx: { tenant }, payment, funds }: Candidate): string[] {
  const { network, asset, payer, settlement } = payment
  const names = [paymentsLockName(tenant)]
  if (settlement !== null) names.push(gasLockName({ tenant, network }))
  if (funds !== undefined) names.push(`payer-funds:${network}/${asset}/${payer}`)
  // Sponsored transactions of a payer are counted in all tokens together.
  if (settlement?.kind === 'tempo' && settlement.sponsoredGas !== '0') names.push(`payer-sponsored:${network}/${payer}`)
  const nonce = tempoNonceOf(payment)
  if (nonce !== null) names.push(nonce)
  return names
}

/** The name of a payer's nonce on Tempo, of which one open payment at a time is recorded. */
function tempoNonceOf({ network, payer, settlement }: NewPayment): string | null {
  if (settlement?.kind !== 'tempo' || settlement.nonceName === undefined) return null
  return lockNameOfText('nonce', `${network}/${payer}/${settlement.nonceName}`)
}

function receiptOf({ ctx, payment, funds }: Candidate, { verifiedMsMax }: RecordLimits): PaymentToRecord {
  return {
    payment,
    eventId: newId('evt', ctx),
    eventPayload: receivedPayload(payment),
    gasNanoUsd: gasReservedBy(ctx, payment),
    checkAt: payment.status === 'verified' ? endOfWaiting(payment, verifiedMsMax) : null,
    rawBalance: funds?.rawBalance ?? null,
  }
}

/** Returns until when settlement may be requested. */
function endOfWaiting({ createdAt, validBefore }: NewPayment, verifiedMsMax: number): Date {
  const latest = createdAt.getTime() + verifiedMsMax
  return instantOf(Math.min(latest, validBefore?.getTime() ?? latest))
}

/**
 * Commits idempotency keys, by one statement. A key that a repeat took over is left alone; the credential still buys only once, and the rest of the
 * batch is not rolled back.
 */
async function commitKeys(tx: Tx, made: readonly Candidate[]): Promise<void> {
  await Promise.all(
    made.map(({ ctx, payment }) =>
      ctx.idempotency?.commit(tx, payment.id).catch((error: unknown) => {
        if (!isProblem(error, 'idempotency-in-progress')) throw error
      }),
    ),
  )
}

function receivedPayload(payment: NewPayment): Record<string, unknown> {
  return {
    ...paymentPayload(payment),
    protocol: payment.protocol,
    txHash: payment.status === 'settled' ? payment.txHash : null,
    route: payment.route,
    vaultId: null,
    receivedAt: payment.createdAt.toISOString(),
  }
}

/**
 * Returns the response of verifying this payment. It serves a repeat whose first response was never sent, perhaps because the witness could not cover
 * the payment. A payment whose money has moved or may move is covered before the seller delivers for this response.
 */
export async function verifiedResponse(
  ctx: Pick<Ctx, 'clock' | 'db' | 'screening' | 'settlementTokens' | 'tenant' | 'witness'>,
  paymentId: string,
): Promise<z.input<typeof VerifiedPayment>> {
  if (paymentId.endsWith(underpricedMark)) throw underpriced()
  const row = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  if (row === undefined) throw fail('payment-not-found')
  refuseUnpaid(row)
  refuseWorthless(ctx, row)
  if (row.status !== 'verified') await ctx.witness.cover()
  return responseOf(ctx, row)
}

/**
 * Suffix of the id to which the Idempotency-Key of an underpriced payment is tied, so that a repeat is refused like the
 * first request.
 */
export const underpricedMark = ' underpriced'

/** The refusal of a payment that was credited and is less than the price. */
export function underpriced(): Error {
  return refusedMpp(
    'payment-insufficient',
    'The money is credited and can be refunded. It buys nothing, since it is less than the price is now; do not send it again.',
  )
}

/** Refuses a payment that brings no money: it ended without money, is refunded, or its settlement would fail for its parties or its time. */
export function refuseWorthless(ctx: Pick<Ctx, 'clock' | 'screening' | 'tenant'>, payment: PaymentRow): void {
  const { protocol, status, failureReason, settlement, validBefore, refundedRaw } = payment
  const refuse = (reason: string): never => {
    if (protocol === 'mpp') throw refusedMpp('verification-failed', `The payment has ended without money: ${reason}.`)
    throw fail('payment-verification-failed', { reason })
  }
  if (status === 'settlement_failed' || status === 'voided') refuse(failureReason ?? status)
  if (refundedRaw > 0n) throw fail('duplicate-payment')
  if (status !== 'verified') return
  refuseSanctioned(ctx, payment)
  if (settlement !== null && validBefore !== null && validBefore <= ctx.clock.now()) refuse(expiredReasonOf(settlement))
}

/** The fields from which a payment's response is built. A new payment and a stored payment both have them. */
export type VerifiedFields = Pick<
  PaymentRow,
  | 'id'
  | 'protocol'
  | 'scheme'
  | 'challengeId'
  | 'network'
  | 'rawAmount'
  | 'decimals'
  | 'token'
  | 'payer'
  | 'settledAt'
  | 'status'
  | 'delivery'
  | 'paymentIdentifier'
> & { readonly txHash?: string | null }

/** Returns the response of `payments.verify` for a payment. */
export function responseOf(
  ctx: Pick<Ctx, 'settlementTokens'>,
  payment: VerifiedFields,
): z.input<typeof VerifiedPayment> {
  const network = requireNetwork(payment.network)
  const isMpp = payment.protocol === 'mpp' && payment.scheme !== 'stub'
  return {
    valid: true,
    paymentId: payment.id,
    protocol: payment.protocol,
    scheme: payment.scheme,
    method: isMpp ? (isTempo(network) ? 'tempo' : 'evm') : null,
    challengeId: payment.challengeId,
    network: network.caip2,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    coin: payment.token,
    payer: payment.payer,
    txHash: payment.txHash ?? null,
    settledAt: payment.settledAt,
    settlementPending: payment.status === 'verified' || payment.status === 'settling',
    settlementToken: ctx.settlementTokens.mint(payment.id),
    redeemable: isRedeemable(payment),
  }
}

function isRedeemable({ delivery, challengeId, paymentIdentifier, scheme }: VerifiedFields): boolean {
  if (delivery === null) return false
  return scheme === 'stub' || [challengeId, delivery.challengeId, paymentIdentifier].some((secret) => secret !== null)
}

/**
 * Refuses a payment by a transaction that the chain or the node refused: the first response and every repeat must be the same.
 */
export function refuseUnpaid(row: Pick<PaymentRow, 'settlement' | 'status' | 'failureReason'>): void {
  if (row.settlement?.kind !== 'tempo' || row.status === 'settled' || row.failureReason === null) return
  throw refusedMpp('verification-failed', sentenceOf(row.failureReason))
}
