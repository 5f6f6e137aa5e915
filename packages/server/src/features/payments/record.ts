import { formatAmount } from '@purser/protocol'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { gather } from '../../platform/db/gather.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { isProblem } from '../../platform/errors.ts'
import { publishEvents } from '../../platform/events.ts'
import { newId } from '../../platform/ids.ts'
import {
  addGasReserved,
  addToCounter,
  dayOf,
  limitError,
  listGasReserved,
  lockCounter,
  lockGasReserved,
  monthOf,
  planOf,
  unlimited,
} from '../plans/index.ts'
import { fail } from './errors.ts'
import { insertReceipts } from './record-store.ts'
import { gasOf } from './settlement-call.ts'
import { insertPayments, listTakenClaims, type NewPayment } from './store.ts'

export interface Candidate {
  readonly ctx: Ctx
  readonly payment: NewPayment
}

type Recorded = 'recorded' | 'duplicate' | 'plan-limit' | 'gas-budget'

/** What recording needs to know of the deployment. */
export interface RecordLimits {
  readonly gasPerDayMax: bigint
}

/** Tenants whose rounds a process keeps apart; beyond it the map begins anew, which costs a round its company and nothing else. */
const recordersMax = 10_000

/**
 * Records verified payments, those of concurrent requests together, one round of a tenant at a time since they share its count: one transaction for a round of one tenant holds the
 * rows, their events, the month's count, the gas budget and the callers' idempotency keys. A credential that was there
 * already is refused as a duplicate by the unique claim, whoever sent it first.
 */
export function createRecorder(deps: Pick<Deps, 'db'>, limits: RecordLimits): (candidate: Candidate) => Promise<void> {
  const recorders = new Map<string, (candidate: Candidate) => Promise<Recorded | Error>>()
  const recorderOf = ({ tenant }: Ctx) => {
    const key = `${tenant.organisationId}/${tenant.environment}`
    const known = recorders.get(key)
    if (known !== undefined) return known
    if (recorders.size >= recordersMax) recorders.clear()
    const made = gather<Candidate, Recorded | Error>({ itemsMax: 128, roundsMax: 1 }, (candidates) =>
      recordOrFail(deps.db, candidates, limits),
    )
    recorders.set(key, made)
    return made
  }
  return async (candidate) => refuse(candidate, await recorderOf(candidate.ctx)(candidate))
}

/**
 * A row that the database will not take fails by itself: its neighbours are recorded one by one. So are rounds of two processes that wait
 * for each other, which takes a payer who shows claims and challenges crosswise.
 */
async function recordOrFail(
  db: Db,
  group: readonly Candidate[],
  limits: RecordLimits,
): Promise<readonly (Recorded | Error)[]> {
  try {
    return await recordTenant(db, group, limits)
  } catch (error) {
    if (group.length > 1 && (isRefusedData(error) || isDeadlock(error))) {
      return (await Promise.all(group.map((candidate) => recordOrFail(db, [candidate], limits)))).flat()
    }
    return group.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function refuse(candidate: Candidate, outcome: Recorded | Error): Promise<void> {
  if (outcome instanceof Error) throw outcome
  if (outcome === 'duplicate') throw fail('duplicate-payment')
  if (outcome === 'gas-budget') throw fail('settlement-budget-exceeded')
  if (outcome === 'plan-limit') throw await limitReached(candidate.ctx)
}

/** The 429 of the plan's monthly count, with the figures as they are now. */
export async function limitReached(ctx: Ctx): Promise<Error> {
  return ctx.db.tx(async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const current = await lockCounter(tx, ctx.tenant, 'payments', monthOf(ctx.clock.now()))
    return limitError(ctx, 'payment-limit-reached', plan.paymentsPerMonth, current)
  })
}

/** Chooses the way: a plan without a limit needs no lock before its rows. */
async function recordTenant(db: Db, group: readonly Candidate[], limits: RecordLimits): Promise<Recorded[]> {
  const organisationId = group[0]?.ctx.tenant.organisationId
  if (organisationId === undefined) return []
  const [plan, gasLeft] = await Promise.all([planOf(db, organisationId), gasLeftNow(db, group, limits)])
  if (plan.paymentsPerMonth !== unlimited) return db.tx((tx) => recordGroup(tx, group, limits))
  const keyed = group.some(({ ctx }) => ctx.idempotency !== undefined)
  return keyed ? db.tx((tx) => recordUnlimited(tx, group, gasLeft)) : recordUnlimited(db, group, gasLeft)
}

/**
 * Rows, events, count and gas in one statement. The gas budget is read without holding it: rounds of several processes at
 * the same instant may go over it together, by no more than what they carry.
 */
async function recordUnlimited(
  db: Db | Tx,
  group: readonly Candidate[],
  gasLeft: Map<string, bigint>,
): Promise<Recorded[]> {
  const first = group[0]
  if (first === undefined) return []
  const { ctx } = first
  const now = ctx.clock.now()
  const day = dayOf(now)
  const admitted = admitEach(group, { room: Number.POSITIVE_INFINITY, taken: new Set(), gasLeft })
  const receipts = group
    .filter((_, index) => admitted[index] === 'recorded')
    .map(({ payment }) => ({
      payment,
      eventId: newId('evt', ctx),
      eventPayload: receivedPayload(payment),
      gas: payment.settlement === null ? 0n : gasOf(payment.settlement),
    }))
  const count = { month: monthOf(now), day, createdAt: now }
  const made = receipts.length === 0 ? new Set<string>() : await insertReceipts(db, ctx.tenant, receipts, count)
  if (db.kind === 'tx') await commitKeys(db, group, made)
  return verdicts(group, admitted, made)
}

/** What is left of the day's gas on each network of the group, without holding it. */
async function gasLeftNow(db: Db, group: readonly Candidate[], limits: RecordLimits): Promise<Map<string, bigint>> {
  const ctx = group.find(({ payment }) => payment.settlement !== null)?.ctx
  const reserved = ctx === undefined ? undefined : await listGasReserved(db, ctx.tenant, dayOf(ctx.clock.now()))
  return new Map(
    group.map(({ payment: { network } }) => [network, limits.gasPerDayMax - (reserved?.get(network) ?? 0n)]),
  )
}

/** A key that a repeat took over ties nothing; the credential buys once all the same, and its neighbours are not undone for it. */
async function commitKeys(tx: Tx, group: readonly Candidate[], made: ReadonlySet<string>): Promise<void> {
  for (const { ctx, payment } of group) {
    if (!made.has(payment.id)) continue
    await ctx.idempotency?.commit(tx, payment.id).catch((error: unknown) => {
      if (!isProblem(error, 'idempotency-in-progress')) throw error
    })
  }
}

function verdicts(group: readonly Candidate[], admitted: readonly Recorded[], made: ReadonlySet<string>): Recorded[] {
  return group.map(({ payment }, index) => {
    const verdict = admitted[index] ?? 'duplicate'
    return verdict === 'recorded' && !made.has(payment.id) ? 'duplicate' : verdict
  })
}

async function recordGroup(tx: Tx, group: readonly Candidate[], limits: RecordLimits): Promise<Recorded[]> {
  const first = group[0]
  if (first === undefined) return []
  const { ctx } = first
  const now = ctx.clock.now()
  const month = monthOf(now)
  const plan = await planOf(tx, ctx.tenant.organisationId)
  const used = await lockCounter(tx, ctx.tenant, 'payments', month)
  const room = plan.paymentsPerMonth < 0 ? Number.POSITIVE_INFINITY : plan.paymentsPerMonth - used
  const admitted = await admit(tx, group, room, limits)
  const chosen = group.filter((_, index) => admitted[index] === 'recorded')
  if (chosen.length === 0) return admitted
  const inserted = await insertPayments(
    tx,
    ctx.tenant,
    chosen.map(({ payment }) => payment),
  )
  const made = chosen.filter(({ payment }) => inserted.has(payment.id))
  if (made.length > 0) {
    await reserveGas(tx, made)
    await publishEvents(
      ctx,
      tx,
      'payment.received',
      made.map(({ payment }) => receivedPayload(payment)),
    )
    await addToCounter(tx, ctx.tenant, 'payments', month, made.length)
    await commitKeys(tx, group, inserted)
  }
  return verdicts(group, admitted, inserted)
}

/** Decides, before anything is written, who is a copy, who is over the plan and who is over the gas budget. */
async function admit(tx: Tx, group: readonly Candidate[], room: number, limits: RecordLimits): Promise<Recorded[]> {
  const claims = group.flatMap(({ payment }) => (payment.claimKey === null ? [] : [payment.claimKey]))
  const taken = new Set(Number.isFinite(room) && claims.length > 0 ? await listTakenClaims(tx, claims) : [])
  return admitEach(group, { room, taken, gasLeft: await gasLeftByNetwork(tx, group, limits) })
}

interface Room {
  readonly room: number
  readonly taken: Set<string>
  readonly gasLeft: Map<string, bigint>
}

function admitEach(group: readonly Candidate[], { room, taken, gasLeft }: Room): Recorded[] {
  let left = room
  return group.map(({ payment }) => {
    if (payment.claimKey !== null && taken.has(payment.claimKey)) return 'duplicate'
    if (left <= 0) return 'plan-limit'
    if (payment.settlement !== null) {
      const gas = gasLeft.get(payment.network) ?? 0n
      const needed = gasOf(payment.settlement)
      if (needed > 0n && gas < needed) return 'gas-budget'
      gasLeft.set(payment.network, gas - needed)
    }
    if (payment.claimKey !== null) taken.add(payment.claimKey)
    left -= 1
    return 'recorded'
  })
}

async function gasLeftByNetwork(
  tx: Tx,
  group: readonly Candidate[],
  limits: RecordLimits,
): Promise<Map<string, bigint>> {
  const onChain = Map.groupBy(
    group.filter(({ payment }) => payment.settlement !== null),
    ({ payment }) => payment.network,
  )
  const left = new Map<string, bigint>()
  for (const [network, [first]] of inLockOrder(onChain)) {
    if (first === undefined) continue
    const { tenant, clock } = first.ctx
    left.set(network, limits.gasPerDayMax - (await lockGasReserved(tx, tenant, network, dayOf(clock.now()))))
  }
  return left
}

async function reserveGas(tx: Tx, made: readonly Candidate[]): Promise<void> {
  const onChain = Map.groupBy(
    made.filter(({ payment }) => payment.settlement !== null),
    ({ payment }) => payment.network,
  )
  for (const [network, candidates] of onChain) {
    const ctx = candidates[0]?.ctx
    if (ctx === undefined) continue
    await addGasReserved(
      tx,
      ctx.tenant,
      network,
      dayOf(ctx.clock.now()),
      candidates.reduce((gas, { payment }) => gas + (payment.settlement === null ? 0n : gasOf(payment.settlement)), 0n),
    )
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
