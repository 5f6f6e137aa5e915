import { sameAddress } from '@purser/protocol'
import type { ChainTransactionId } from '../../chain/port.ts'
import { appendAudit } from '../../platform/audit.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { batch } from '../../platform/db/batch.ts'
import { type Db, isDeadlock, isRefusedData, type Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { type ApprovalId, requestApproval } from '../approvals/index.ts'
import { refusalsOfEnded } from '../callers/index.ts'
import { contendedBy, insertReservations, lockCovered, type NewReservation } from '../funds/index.ts'
import { countGas, type OutgoingMovement, reservePolicies } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { storeGasless } from './gasless/begin.ts'
import { orderTaken } from './partner.ts'
import { joinAllowanceQueue, setNextPollAt } from './partner-store.ts'
import { allowanceKeyOf, claimOf, gasCostOf, wantsOf } from './plan.ts'
import type { Ctx, Intent, OwnIntent, RecordedTransfer, TransferPlan, TransferPorts } from './ports.ts'
import { deleteQuotes, takeOrders } from './quote-store.ts'
import type { NewTransfer } from './schema.ts'
import { insertSteps, insertTransfers, type StoredTransfer, type TransferId, transferPurpose } from './store.ts'

export type RecordOutcome = RecordedTransfer | Error

/**
 * Rejected intents, with the reasons, found after others were written: the transaction is rolled back, and the others are stored without
 * them.
 */
export class RejectedIntents extends Error {
  readonly causes: ReadonlyMap<Intent, Error>
  constructor(causes: ReadonlyMap<Intent, Error>) {
    super('transfers were left out')
    this.causes = causes
  }
}

/**
 * Stores planned transfers of one tenant, their steps and first nonces in the caller's transaction; once it commits, the lanes execute
 * them. A gasless transfer has an authorization to sign instead; one that needs an approval only reserves its funds. Returns for each its id, or its refusal: `insufficient-balance` or
 * `policy-denied`, which does not affect the others. Throws `RejectedIntents`.
 */
export async function storeTransfers(tx: Tx, intents: readonly Intent[]): Promise<readonly RecordOutcome[]> {
  const [first] = intents
  if (first === undefined) return []
  const { ctx } = first
  const claims = intents.map(({ plan }) => claimOf(ctx.tenant, plan))
  const covered = await lockCovered(ctx, tx, claims)
  const named = intents.map((intent) => ({ ...intent, intent, transferId: newId('wtx', intent.ctx) }))
  const fitting = named.filter((_, index) => covered[index])
  const counted = fitting.filter(({ purpose }) => purpose !== 'withdrawal')
  const judged = await reservePolicies(ctx, tx, counted.map(movementOf))
  const denied = new Map(
    counted.flatMap(({ transferId }, index) => {
      const denial = judged[index]?.refusal
      return denial === undefined ? [] : [[transferId, denial] as const]
    }),
  )
  const limits = new Map(counted.map(({ transferId }, index) => [transferId, judged[index]?.approvalAbove]))
  const made = fitting.filter(({ transferId }) => !denied.has(transferId))
  for (const { purpose, plan, transferId: subjectId } of made) {
    const gas = gasCostOf(plan)
    const { masterWalletId } = plan.source
    if (purpose === 'withdrawal' && gas !== undefined) await countGas(ctx, tx, { masterWalletId, subjectId, gas })
  }
  const approved = await withApprovals(tx, made, limits)
  await store(ctx, tx, approved)
  const waiting = new Set(approved.flatMap(({ transferId, approvalId }) => (approvalId === null ? [] : [transferId])))
  return named.map(({ transferId, plan }, index) => {
    if (!covered[index]) return contendedBy(plan)
    return denied.get(transferId) ?? { transferId, isForApproval: waiting.has(transferId) }
  })
}

type Named = Intent & { readonly intent: Intent; readonly transferId: TransferId }

type Approved = Named & { readonly approvalId: ApprovalId | null }

/** Requests the approvals of transfers above their policies' limits. Throws `RejectedIntents` if a wallet has too many open ones. */
async function withApprovals(
  tx: Tx,
  made: readonly Named[],
  limits: ReadonlyMap<TransferId, string | undefined>,
): Promise<readonly Approved[]> {
  const rejected = new Map<Intent, Error>()
  const approved: Approved[] = []
  for (const one of made) {
    const approvalAbove = limits.get(one.transferId)
    const approvalId = approvalAbove === undefined ? null : await requestFor(tx, one, approvalAbove)
    if (approvalId instanceof Error) rejected.set(one.intent, approvalId)
    else approved.push({ ...one, approvalId })
  }
  if (rejected.size > 0) throw new RejectedIntents(rejected)
  return approved
}

function requestFor(tx: Tx, one: Named, approvalAbove: string): ReturnType<typeof requestApproval> {
  const { ctx, request, refund, plan, operation, purpose, transferId } = one
  const { masterWalletId, token, decimals, rawAmount, recipient } = movementOf(one)
  return requestApproval(ctx, tx, {
    masterWalletId,
    walletId: plan.source.id,
    kind: refund !== undefined ? 'refund' : purpose === 'payment' ? 'payment' : 'transfer',
    operation,
    subjectId: transferId,
    paymentId: refund?.paymentId ?? null,
    chain: plan.fromChain,
    token,
    decimals,
    rawAmount,
    recipient,
    toChain: request.toChain,
    toToken: request.toToken,
    approvalAbove,
    note: refund === undefined ? (request.reference ?? null) : refund.reason,
  })
}

async function store(ctx: Pick<Ctx, 'clock' | 'lanes' | 'tenant'>, tx: Tx, all: readonly Approved[]): Promise<void> {
  await storeRows(ctx, tx, all)
  const made = all.filter(({ approvalId }) => approvalId === null)
  const gasless = made.filter(({ plan, purpose }) => plan.steps.length === 0 && purpose !== 'payment')
  const { nonces: ofGasless = [], over = [] } = gasless.length === 0 ? {} : await storeGasless(tx, gasless)
  if (over.length > 0) throw new RejectedIntents(new Map(over.map(({ intent, plan }) => [intent, contendedBy(plan)])))
  const quoted = made.filter(({ plan }) => plan.quote !== undefined)
  const taken = quoted.length === 0 ? undefined : await takeOrders(tx, quoted)
  const late = quoted.filter(({ transferId }) => taken?.has(transferId) === true)
  if (late.length > 0)
    throw new RejectedIntents(new Map(late.map(({ intent }) => [intent, orderTaken(intent.ctx, intent.plan)])))
  const ofPayments = made.flatMap(({ transferId, nonce }) =>
    nonce === undefined ? [] : [[transferId, nonce] as const],
  )
  await storeSteps(ctx, tx, made, new Map([...ofGasless, ...ofPayments]))
  const waiting = all.filter(({ approvalId }) => approvalId !== null)
  if (waiting.length > 0) await reserveSteps(ctx, tx, waiting)
}

async function storeRows(ctx: Pick<Ctx, 'clock' | 'tenant'>, tx: Tx, made: readonly Approved[]): Promise<void> {
  if (made.length === 0) return
  const unquoted = await takeQuotes(ctx, tx, made)
  if (unquoted.size > 0) throw new RejectedIntents(unquoted)
  await insertTransfers(tx, ctx.tenant, made.map(rowOf))
}

interface Stored {
  readonly transferId: TransferId
  readonly plan: TransferPlan
  readonly signedBy?: string
}

/**
 * Stores the steps of transfers and their reservations. A first step gets its nonce now, a later step when it is due. A
 * transfer that waits for another one at the same contract gets no nonce yet. `nonces` are those of authorizations, for
 * transfers without steps. The caller has locked the owners.
 */
export async function storeSteps(
  ctx: Pick<Ctx, 'clock' | 'lanes' | 'tenant'>,
  tx: Tx,
  made: readonly Stored[],
  nonces: ReadonlyMap<TransferId, Uint8Array> = new Map(),
): Promise<void> {
  const firsts = await planFirsts(ctx, tx, made)
  const steps = made.flatMap(({ transferId, plan }) =>
    plan.steps.map(({ to: toAddress, ...step }, position) => {
      const transactionId = position === 0 ? (firsts.get(transferId) ?? null) : null
      return { transferId, position, ...step, toAddress, transactionId }
    }),
  )
  // Sent together.
  await Promise.all([steps.length > 0 && insertSteps(tx, steps), reserve(ctx, tx, made, { firsts, nonces })])
}

/** Reserves the funds of transfers that do not begin yet: none of their steps has a nonce. The caller has locked the owners. */
function reserveSteps(ctx: Pick<Ctx, 'tenant'>, tx: Tx, made: readonly Stored[]): Promise<void> {
  return reserve(ctx, tx, made, { firsts: new Map(), nonces: new Map() })
}

interface Begun {
  readonly firsts: ReadonlyMap<TransferId, ChainTransactionId>
  readonly nonces: ReadonlyMap<TransferId, Uint8Array>
}

function reserve(ctx: Pick<Ctx, 'tenant'>, tx: Tx, made: readonly Stored[], { firsts, nonces }: Begun): Promise<void> {
  return insertReservations(
    tx,
    ctx.tenant,
    made.flatMap(({ transferId, plan, signedBy }) =>
      wantsOf(ctx.tenant, plan).map((want): NewReservation => {
        const transactionId = want.part === 0 ? (firsts.get(transferId) ?? null) : null
        const authorizationNonce = nonces.get(transferId) ?? null
        return { ...want, subjectId: transferId, transactionId, authorizationNonce, signedBy }
      }),
    ),
  )
}

/** The transactions of the first steps of transfers that begin now. */
async function planFirsts(
  ctx: Pick<Ctx, 'clock' | 'lanes'>,
  tx: Tx,
  made: readonly Stored[],
): Promise<ReadonlyMap<TransferId, ChainTransactionId>> {
  const beginning: Stored[] = []
  for (const one of made) {
    if (one.plan.steps.length === 0) continue
    const key = allowanceKeyOf(one.plan)
    const isWaiting = key !== undefined && (await joinAllowanceQueue(tx, one.transferId, key)) === 'waiting'
    if (isWaiting) await setNextPollAt(tx, one.transferId, ctx.clock.now())
    else beginning.push(one)
  }
  const planned = beginning.flatMap(({ plan: { network, steps } }) =>
    steps
      .slice(0, 1)
      .map((step) => ({ account: step.sender, planned: { ...step, network, purpose: transferPurpose } })),
  )
  if (planned.length === 0) return new Map()
  const transactionIds = await ctx.lanes.planAll(tx, planned)
  for (const network of new Set(beginning.map(({ plan }) => plan.network)))
    tx.afterCommit(() => ctx.lanes.notify(network))
  return new Map(
    beginning.flatMap(({ transferId }, index) => {
      const transactionId = transactionIds[index]
      return transactionId === undefined ? [] : [[transferId, transactionId]]
    }),
  )
}

/** The movement that the wallet's spend policy evaluates. */
function movementOf({
  request,
  plan,
  operation,
  transferId,
}: Named): OutgoingMovement & { readonly subjectId: string } {
  return { ...outgoing(request, plan), operation, subjectId: transferId }
}

/** The movement of a transfer that is only quoted. */
export function outgoing({ toAddress }: NewTransfer, plan: TransferPlan): OutgoingMovement {
  const { source, coin, rawAmount, route } = plan
  const { symbol: token, decimals } = coin
  const { masterWalletId } = source
  const isToOwnMaster =
    route === 'direct' && source.address !== source.masterAddress && sameAddress(toAddress, source.masterAddress)
  const movement = { masterWalletId, operation: 'transfer', token, rawAmount, decimals, recipient: toAddress } as const
  return { ...movement, isToOwnMaster, gas: gasCostOf(plan), claimGas: plan.claimGas }
}

function rowOf({ ctx, transferId, request, plan, approvalId, ...one }: Approved): StoredTransfer {
  const { source, network, target, coin, toCoin, rawAmount, fromChain, route, routeReason, quote } = plan
  return {
    id: transferId,
    walletId: source.id,
    fromAddress: source.address,
    toAddress: request.toAddress,
    fromChain,
    fromNetwork: network.name,
    toChain: request.toChain,
    toNetwork: target.name,
    fromToken: request.fromToken,
    toToken: request.toToken,
    decimals: coin.decimals,
    rawAmount,
    route,
    routeReason,
    partner: quote?.partner ?? null,
    partnerReference: quote?.reference ?? null,
    quoteExpiresAt: quote?.expiresAt ?? null,
    toDecimals: quote === undefined ? null : toCoin.decimals,
    rawOut: quote?.rawOut ?? null,
    rawOutMin: quote?.rawOutMin ?? null,
    reference: request.reference ?? null,
    resource: one.resource ?? null,
    metadata: request.metadata ?? {},
    purpose: one.purpose,
    // A caller who waits for an approval waits for no block: an event reports the end.
    reportedState: approvalId === null ? (one.reportedState ?? null) : 'pending',
    approvalId,
    createdAt: ctx.clock.now(),
  }
}

/** Most tenants whose batches a process keeps separate; beyond that the map is cleared, which only makes batches smaller. */
const tenantsMax = 10_000

/** Creates `recordTransfer`. A tenant has one batch in progress at a time, since its transfers lock the same wallets and the same log. */
export function createRecordTransfer(db: Db): TransferPorts['recordTransfer'] {
  const recorders = new Map<string, (intent: OwnIntent) => Promise<RecordOutcome>>()
  const recorderOf = ({ organisationId, environment }: Tenant) => {
    const name = `${organisationId}/${environment}`
    if (recorders.size >= tenantsMax) recorders.clear()
    const recorder =
      recorders.get(name) ??
      batch<OwnIntent, RecordOutcome>({ itemsMax: 64, batchesMax: 1 }, (some) => record(db, some))
    recorders.set(name, recorder)
    return recorder
  }
  return async (intent) => {
    const outcome = await recorderOf(intent.ctx.tenant)(intent)
    if (outcome instanceof Error) throw outcome
    return outcome
  }
}

/** Most attempts to store one transfer whose transaction the database aborted because of a deadlock. */
const deadlocksMax = 5

/**
 * Stores the batch. A transfer that cannot be stored fails alone: the others are stored without it. A deadlock rolls back the whole
 * transaction, so the transfers are then stored one by one.
 */
async function record(db: Db, intents: readonly OwnIntent[], deadlocks = 0): Promise<readonly RecordOutcome[]> {
  try {
    return await db.tx((tx) => recordBatch(tx, intents), { readsByKeys: true })
  } catch (error) {
    if (error instanceof RejectedIntents) return recordOthers(db, intents, error)
    if (intents.length > 1 && (isRefusedData(error) || isDeadlock(error)))
      return (await Promise.all(intents.map((intent) => record(db, [intent])))).flat()
    if (isDeadlock(error) && deadlocks < deadlocksMax) return record(db, intents, deadlocks + 1)
    return intents.map(() => (error instanceof Error ? error : new Error(String(error))))
  }
}

async function recordOthers(
  db: Db,
  intents: readonly OwnIntent[],
  rejected: RejectedIntents,
): Promise<RecordOutcome[]> {
  const others = intents.filter((one) => !rejected.causes.has(one))
  const outcomes = others.length === 0 ? [] : await record(db, others)
  return intents.map((one) => rejected.causes.get(one) ?? outcomes[others.indexOf(one)] ?? rejected)
}

async function recordBatch(tx: Tx, intents: readonly OwnIntent[]): Promise<readonly RecordOutcome[]> {
  const outcomes = await storeTransfers(tx, intents)
  const made = intents.flatMap((intent, index) => {
    const outcome = outcomes[index]
    return outcome === undefined || outcome instanceof Error ? [] : [{ intent, target: outcome.transferId }]
  })
  // Sent together.
  const stored = made.map(({ intent }) => intent)
  await Promise.all([refuseEnded(tx, stored), commitKeys(tx, made)])
  for (const { intent, target } of made) {
    const { ctx, action, request, plan } = intent
    const { fromToken: token, toAddress: to, amount } = request
    appendAudit(ctx, tx, {
      action,
      target,
      details: { from: plan.source.id, to, network: plan.network.name, token, amount },
    })
  }
  return outcomes
}

/** Throws `RejectedIntents` for those of callers who lost their access since: planning a transfer takes seconds. */
async function refuseEnded(tx: Tx, intents: readonly OwnIntent[]): Promise<void> {
  const refusals = await refusalsOfEnded(tx, intents)
  if (refusals.size > 0) throw new RejectedIntents(refusals)
}

/** Commits idempotency keys, by one statement. Throws `RejectedIntents` for those whose key a repeat took over. */
async function commitKeys(
  tx: Tx,
  made: readonly { readonly intent: OwnIntent; readonly target: TransferId }[],
): Promise<void> {
  const superseded = new Map<Intent, Error>()
  await Promise.all(
    made.map(({ intent, target }) =>
      intent.ctx.idempotency?.commit(tx, target).catch((error: unknown) => {
        if (!isProblem(error, 'idempotency-in-progress')) throw error
        superseded.set(intent, error)
      }),
    ),
  )
  if (superseded.size > 0) throw new RejectedIntents(superseded)
}

/**
 * Uses up the quotes of transfers in the transaction that stores them. Returns those that must not be stored, with the reason: of two
 * transfers with one quote the second finds none.
 */
async function takeQuotes<I>(
  ctx: Pick<Ctx, 'clock' | 'tenant'>,
  tx: Tx,
  made: readonly { readonly intent: I; readonly request: NewTransfer }[],
): Promise<ReadonlyMap<I, Error>> {
  const refused = new Map<I, Error>()
  const users = made.flatMap(({ intent, request: { quoteId } }) => (quoteId === undefined ? [] : [{ intent, quoteId }]))
  if (users.length === 0) return refused
  const taken = await deleteQuotes(tx, ctx.tenant, [...new Set(users.map(({ quoteId }) => quoteId))])
  const open = new Map(taken.map(({ id, expiresAt }) => [id, expiresAt]))
  for (const { intent, quoteId } of users) {
    const expiresAt = open.get(quoteId)
    if (expiresAt === undefined) refused.set(intent, fail('quote-not-found'))
    else if (expiresAt <= ctx.clock.now()) refused.set(intent, fail('quote-expired'))
    open.delete(quoteId)
  }
  return refused
}
