import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { gather } from '../../platform/db/gather.ts'
import { isProblem } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import {
  gasLockName,
  limitError,
  lockCounter,
  monthOf,
  planOf,
  plans,
  reportThresholds,
  unlimited,
} from '../plans/index.ts'
import { refused } from './credential.ts'
import { fail } from './errors.ts'
import { readFunds } from './funds.ts'
import { networkOf } from './give-back.ts'
import { refusedMpp } from './mpp/refused.ts'
import { insertReceipts, lockForRecording, type NewReceipt, type Verdict } from './record-store.ts'
import { refuseSanctioned } from './screened.ts'
import { gasOfSettlement } from './settlement-gas.ts'
import type { NewPayment } from './store.ts'

/** What a payer can pay with, as the chain says it. */
export interface Funds {
  readonly rawBalance: bigint
  /** Payments that are open here and whose money had left the payer when the balance was read. */
  readonly spentIds: readonly string[]
}

export interface Candidate {
  readonly ctx: Ctx
  readonly payment: NewPayment
  /** What the payer has, as verifying has just read it; left out for a payment that nobody has to trust. */
  readonly funds?: Funds
}

/** What recording needs to know of the deployment. */
export interface RecordLimits {
  readonly nanoUsdPerDayMax: bigint
  readonly openPerPayerMax: number
  /** How long a payment that nobody asks to settle counts. */
  readonly verifiedMsMax: number
}

/** Open payments of one payer at one organisation. */
export const openPerPayerMax = 100
/** Tenants whose rounds a process keeps apart; beyond it the map begins anew, which costs a round its company and nothing else. */
const recordersMax = 10_000

/**
 * Records verified payments whose parties are not sanctioned, those of concurrent requests together, one round of a tenant at a time since they share its count: one transaction holds the
 * rows, their events, the month's count, the gas budget and the callers' idempotency keys. A credential that was there
 * already is refused as a duplicate by the unique claim, whoever sent it first.
 */
export function createRecorder(deps: Pick<Deps, 'db'>, limits: RecordLimits): (candidate: Candidate) => Promise<void> {
  const recorders = new Map<string, (candidate: Candidate) => Promise<Verdict | Error>>()
  const recorderOf = ({ tenant }: Ctx) => {
    const key = `${tenant.organisationId}/${tenant.environment}`
    const known = recorders.get(key)
    if (known !== undefined) return known
    if (recorders.size >= recordersMax) recorders.clear()
    const made = gather<Candidate, Verdict | Error>({ itemsMax: 128, roundsMax: 1 }, (candidates) =>
      recordOrFail(deps.db, candidates, limits),
    )
    recorders.set(key, made)
    return made
  }
  return async (candidate) => {
    const { ctx, payment, funds } = candidate
    refuseSanctioned(ctx, payment)
    const record = recorderOf(ctx)
    const outcome = await record(candidate)
    if (outcome !== 'insufficient-funds' || funds === undefined) return refuse(candidate, outcome)
    await refuse(candidate, await record({ ctx, payment, funds: await readFunds(ctx, payment) }))
  }
}

/**
 * A row that the database will not take fails by itself: its neighbors are recorded one by one. So are rounds of two processes that wait
 * for each other.
 */
async function recordOrFail(
  db: Db,
  group: readonly Candidate[],
  limits: RecordLimits,
): Promise<readonly (Verdict | Error)[]> {
  try {
    return await db.tx((tx) => recordRound(tx, group, limits))
  } catch (error) {
    if (group.length > 1 && (isRefusedData(error) || isDeadlock(error))) {
      return (await Promise.all(group.map((candidate) => recordOrFail(db, [candidate], limits)))).flat()
    }
    return group.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function refuse(candidate: Candidate, outcome: Verdict | Error): Promise<void> {
  if (outcome instanceof Error) throw outcome
  if (outcome === 'duplicate') throw fail('duplicate-payment')
  if (outcome === 'gas-budget') throw fail('settlement-budget-exceeded')
  if (outcome === 'too-many-open') throw fail('too-many-open-payments')
  if (outcome === 'insufficient-funds') throw shortOfFunds(candidate.payment)
  if (outcome === 'plan-limit') throw await limitReached(candidate.ctx)
}

/** The same words for whatever the payer has open and wherever, so that nobody learns of others' payments. */
function shortOfFunds({ protocol, payer }: NewPayment): Error {
  return protocol === 'mpp'
    ? refusedMpp('verification-failed', 'The authorization was refused: insufficient_funds.', { payer })
    : refused('insufficient_funds', { payer })
}

/** The 429 of the plan's monthly count, with the figures as they are now. */
export async function limitReached(ctx: Ctx): Promise<Error> {
  return ctx.db.tx(async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const current = await lockCounter(tx, ctx.tenant, 'payments', monthOf(ctx.clock.now()))
    return limitError(ctx, 'payment-limit-reached', plan.paymentsPerMonth, current)
  })
}

async function recordRound(tx: Tx, group: readonly Candidate[], limits: RecordLimits): Promise<Verdict[]> {
  const [first] = group
  if (first === undefined) return []
  const { ctx } = first
  const candidates = withoutCopies(group)
  const plan = await lockForRecording(tx, ctx.tenant, candidates.flatMap(lockNamesOf))
  const verdicts = await insertReceipts(
    tx,
    ctx.tenant,
    candidates.map((candidate) => receiptOf(candidate, limits)),
    {
      ...limits,
      paymentsPerMonth: plans[plan].paymentsPerMonth,
      spentIds: group.flatMap(({ funds }) => funds?.spentIds ?? []),
      createdAt: ctx.clock.now(),
    },
  )
  const made = candidates.filter(({ payment }) => verdicts.get(payment.id) === 'recorded')
  if (made.length > 0 && ctx.eventsCommitted !== undefined) tx.afterCommit(ctx.eventsCommitted)
  await commitKeys(tx, made)
  if (made.length > 0) await reportPaymentsUsed(tx, ctx, plans[plan].paymentsPerMonth)
  return group.map(({ payment }) => verdicts.get(payment.id) ?? 'duplicate')
}

/** The round holds the organisation's lock for payments, so that nobody else counts meanwhile. */
async function reportPaymentsUsed(tx: Tx, ctx: Ctx, limit: number): Promise<void> {
  if (limit === unlimited) return
  const used = await lockCounter(tx, ctx.tenant, 'payments', monthOf(ctx.clock.now()))
  await reportThresholds(tx, ctx, { kind: 'payments', limit, used })
}

/** Of copies that came together only the first can be recorded, and the others take nobody's place. */
function withoutCopies(group: readonly Candidate[]): readonly Candidate[] {
  const seen = new Set<string>()
  return group.filter(({ payment: { claimKey, challengeId } }) => {
    const names = [claimKey, challengeId].filter((name) => name !== null)
    if (names.some((name) => seen.has(name))) return false
    for (const name of names) seen.add(name)
    return true
  })
}

/** Whatever a round reads and then takes from is another round's only after this one has committed. */
function lockNamesOf({ ctx: { tenant }, payment, funds }: Candidate): string[] {
  const { network, asset, payer, settlement } = payment
  const names = [`payments:${tenant.organisationId}/${tenant.environment}`]
  if (settlement !== null) names.push(gasLockName({ tenant, network }))
  if (funds !== undefined) names.push(`payer-funds:${network}/${asset}/${payer}`)
  return names
}

function receiptOf({ ctx, payment, funds }: Candidate, { verifiedMsMax }: RecordLimits): NewReceipt {
  const { settlement } = payment
  return {
    payment,
    eventId: newId('evt', ctx),
    eventPayload: receivedPayload(payment),
    gasNanoUsd:
      settlement === null ? 0n : ctx.gasPrices.costOf(networkOf(payment.network), gasOfSettlement(settlement)),
    checkAt: payment.status === 'verified' ? endOfWaiting(payment, verifiedMsMax) : null,
    rawBalance: funds?.rawBalance ?? null,
  }
}

/** Until when anybody may ask to settle it. */
function endOfWaiting({ createdAt, validBefore }: NewPayment, verifiedMsMax: number): Date {
  const latest = createdAt.getTime() + verifiedMsMax
  return instantOf(Math.min(latest, validBefore?.getTime() ?? latest))
}

/** A key that a repeat took over ties nothing; the credential buys once all the same, and its neighbors are not undone for it. */
async function commitKeys(tx: Tx, made: readonly Candidate[]): Promise<void> {
  for (const { ctx, payment } of made) {
    await ctx.idempotency?.commit(tx, payment.id).catch((error: unknown) => {
      if (!isProblem(error, 'idempotency-in-progress')) throw error
    })
  }
}

function receivedPayload(payment: NewPayment): Record<string, unknown> {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    protocol: payment.protocol,
    payer: payment.payer,
    txHash: payment.status === 'settled' ? payment.txHash : null,
    route: payment.route,
    vaultId: null,
    receivedAt: payment.createdAt.toISOString(),
  }
}
