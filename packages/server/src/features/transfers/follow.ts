import { bytesToHex, type Network, requireNetwork, tokenBySymbol } from '@purser/protocol'
import type { PlannedCall, RouteRequest, RouteStatus, RoutingPartner } from '../../partners/routing/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { assignReservations, type Coin } from '../funds/index.ts'
import { withShareOwners } from '../plans/index.ts'
import { lockPayer, nextPollTime, readPayer, storeAuxiliary } from './auxiliary.ts'
import { beginWaiting, isWaitingForAllowance } from './begin-waiting.ts'
import { takeCoinShare } from './coin-share-store.ts'
import { end } from './ending.ts'
import { allowanceOf, slippageBps } from './partner.ts'
import {
  type DueForPoll,
  isAnyDueForPoll,
  listDueForPoll,
  markArrived,
  setNextPollAt,
  setPartnerStatus,
  takeMessage,
} from './partner-store.ts'
import { endOf } from './plan.ts'
import type { Ctx, Deps } from './ports.ts'
import { proveCall } from './proof.ts'
import {
  type Deliveries,
  findDeliveries,
  isRefundOf,
  type ProvenRefund,
  proveRefund,
  refundedTogetherMax,
} from './refund-proof.ts'
import {
  assignStep,
  findNextStep,
  listSteps,
  lockTransfer,
  type StepRow,
  type TransferRow,
  transferPurpose,
} from './store.ts'
import { publishRefunded, publishRefundOverdue, reportOverdue } from './unknown.ts'
import { listFailing, listPaidBack, markFailing, markRefunded } from './unknown-store.ts'

type Work = Omit<Ctx, 'tenant'>

/**
 * Polls the partner transfers that are due: assigns a transaction to a step that needed a simulation first, or queries the partner for the
 * state. A partner or a network that does not respond delays only its own transfers. Among these, no share owner delays those of another. No later
 * run waits for it. Idempotent: each result is decided again under the transfer's lock.
 */
export const followPartners: RecurringTask<Deps> = {
  name: 'transfers.follow-partners',
  everyMs: 500,
  isDue: ({ clock }) => isAnyDueForPoll(clock.now()),
  async run(ctx, detach) {
    const list = { now: ctx.clock.now(), cursors: ctx.followedCursors }
    const due = await ctx.db.tx((tx) => listDueForPoll(tx, list), { readsInOrder: true })
    const owned = await withShareOwners(ctx.db, due)
    const polls = [...Map.groupBy(owned, sourceOf)].map(([source, transfers]) =>
      ctx.followedTransfers(source, transfers, (transfer) => pollSafely(ctx, transfer), detach?.stopping),
    )
    if (detach === undefined) await Promise.all(polls)
    else for (const one of polls) detach(one)
  },
}

/** The source that a poll of the transfer reads: the nodes of a network, or a partner. */
function sourceOf({ hasStep, fromNetwork, partner }: DueForPoll): string {
  return hasStep ? `step ${fromNetwork}` : `status ${partner}`
}

/** A partner or node that does not respond is queried again later; the money does not move meanwhile. Does not reject. */
async function pollSafely(ctx: Work, transfer: TransferRow): Promise<void> {
  const { id: transferId, acceptedAt } = transfer
  try {
    await poll(ctx, transfer).catch(async (error: unknown) => {
      ctx.log.warn({ err: error, transferId }, 'a transfer could not be followed; retrying')
      await ctx.db.tx((tx) => setNextPollAt(tx, transferId, nextPollTime(ctx, acceptedAt)))
    })
    await reportOverdue(ctx, transfer)
  } catch (error) {
    ctx.log.error({ err: error, transferId }, 'a transfer could not be postponed; retrying')
  }
}

async function poll(ctx: Work, transfer: TransferRow): Promise<void> {
  const steps = await listSteps(ctx.db, transfer.id)
  const next = steps.find(({ transactionId }) => transactionId === null)
  if (isWaitingForAllowance(transfer, steps)) return beginWaiting(ctx, transfer)
  if (next !== undefined) return tryStep(ctx, transfer, next)
  const isGone = steps.some(({ kind, doneAt }) => kind === 'partner' && doneAt !== null)
  // Its last block may arrive concurrently and set the next poll: this one postpones it and never clears it.
  if (!isGone) return ctx.db.tx((tx) => setNextPollAt(tx, transfer.id, nextPollTime(ctx, transfer.acceptedAt)))
  const status = await queryStatus(ctx, transfer)
  if (status.state === 'claimable') return claim(ctx, transfer, { status, before: steps })
  const refund = await refundOf(ctx, transfer, status)
  const deliveries = await deliveriesOf(ctx, transfer, status)
  await ctx.db.tx(async (tx) => {
    const locked = await lockTransfer(tx, transfer.id)
    if (locked.endedAt !== null) return
    if (deliveries === undefined) {
      await setPartnerStatus(tx, locked.id, `${status.partnerStatus}: not on the chain`)
      return setNextPollAt(tx, locked.id, nextPollTime(ctx, locked.acceptedAt))
    }
    if (!(await isItsOwn(ctx, tx, locked, { partnerStatus: status.partnerStatus, ...deliveries }))) return
    await setPartnerStatus(tx, locked.id, status.partnerStatus)
    await conclude(ctx, tx, locked, { status, refund })
  })
}

/** Simulates the partner's call on the current chain state, and assigns its transaction if it succeeds and its quote has not expired. */
async function tryStep(ctx: Work, transfer: TransferRow, step: StepRow): Promise<void> {
  const network = requireNetwork(transfer.fromNetwork)
  const chain = ctx.chains.on(network)
  const call = { from: step.sender, to: step.toAddress, data: bytesToHex(step.data), value: step.value }
  const token = tokenBySymbol(network, transfer.fromToken)
  if (token !== undefined && !isExpired(ctx, transfer)) {
    // The node may not have the approval yet, or a block was reorganized: not a reason to fail.
    const allowed = await allowanceOf(chain, token.address, { owner: step.sender, spender: step.toAddress })
    if (allowed < transfer.rawAmount) return ctx.db.tx((tx) => setNextPollAt(tx, transfer.id, nextPollTime(ctx, null)))
  }
  const proof = isExpired(ctx, transfer)
    ? undefined
    : await proveCall(ctx, chain, partnerOf(ctx, transfer), {
        ...{ request: requestOf(transfer), before: [] },
        call: { ...call, chainId: network.chainId },
      })
  const trial = await chain.tryCall(call)
  await ctx.db.tx(async (tx) => {
    const locked = await lockTransfer(tx, transfer.id)
    const next = await findNextStep(tx, transfer.id)
    if (locked.endedAt !== null || locked.nextPollAt === null || next?.position !== step.position) return
    if (proof === undefined || isExpired(ctx, locked)) return end(ctx, tx, locked.id, 'quote-expired')
    // A node that supports simulation may recover before the quote expires.
    if (proof.outcome === 'unable') return setNextPollAt(tx, locked.id, nextPollTime(ctx, null))
    if (!trial.ok || proof.outcome !== 'proven') return end(ctx, tx, locked.id, 'call-refused')
    const { gasLimit } = trial
    if (gasLimit > step.gasLimit) return end(ctx, tx, locked.id, 'too-much-gas')
    await beginStep(ctx, tx, next, { network, gasLimit })
    await setNextPollAt(tx, locked.id, null)
  })
}

/** Whether the quote has expired. From then on no step of the transfer gets a nonce. */
export function isExpired({ clock }: Pick<Work, 'clock'>, { quoteExpiresAt }: TransferRow): boolean {
  return quoteExpiresAt !== null && quoteExpiresAt <= clock.now()
}

function partnerOf(ctx: Pick<Work, 'routingPartners'>, { partner: name, environment }: TransferRow): RoutingPartner {
  const partner = name === null ? undefined : ctx.routingPartners[environment][name]
  if (partner === undefined) throw new Error('a transfer in progress with a partner that this deployment does not have')
  return partner
}

async function queryStatus(ctx: Pick<Work, 'log' | 'routingPartners'>, transfer: TransferRow): Promise<RouteStatus> {
  const { partnerReference: reference, txHash } = transfer
  const partner = partnerOf(ctx, transfer)
  if (reference === null || txHash === null) throw new Error('a transfer without a partner')
  const status = await partner.status({
    ...{ request: requestOf(transfer), reference, txHash },
    rawOutMin: transfer.rawOutMin ?? 0n,
  })
  if (status.state === 'pending' && status.isUnknown === true)
    ctx.log.warn(
      { transferId: transfer.id, partner: partner.name, partnerStatus: status.partnerStatus },
      'the partner returned an undocumented status; the transfer stays pending',
    )
  return status
}

/** The request for which the quote was made. */
function requestOf(transfer: TransferRow): RouteRequest {
  const { rawAmount, fromAddress, toAddress } = transfer
  const from = requireNetwork(transfer.fromNetwork)
  const to = requireNetwork(transfer.toNetwork)
  const ends = { from: endOf(from, coinOf(from, transfer.fromToken)), to: endOf(to, coinOf(to, transfer.toToken)) }
  return { ...ends, rawAmount, fromAddress, toAddress, slippageBps }
}

function coinOf(network: Network, symbol: string): Coin {
  const { nativeCoin } = network
  if (nativeCoin !== null && nativeCoin.symbol === symbol) return { ...nativeCoin, address: undefined }
  const token = tokenBySymbol(network, symbol)
  if (token === undefined) throw new Error('a transfer of an unknown token')
  return token
}

/** The refund that the partner names, if the chain confirms it. */
async function refundOf(
  ctx: Pick<Work, 'chains' | 'db' | 'isCustomerPayment' | 'log'>,
  transfer: TransferRow,
  status: RouteStatus,
): Promise<ProvenRefund | undefined> {
  if (status.state !== 'failed' || status.refund !== 'done') return undefined
  const chain = ctx.chains.on(requireNetwork(transfer.fromNetwork))
  const refund = await proveRefund(ctx, chain, transfer, status.refundTxHash)
  if (refund === undefined)
    ctx.log.warn(
      { transferId: transfer.id, partner: transfer.partner, refundTxHash: status.refundTxHash },
      'a partner reports a refund that is not on the chain; waiting',
    )
  return refund
}

/** The deliveries of the partner, if the chain confirms them; empty if the partner reports no delivery. */
async function deliveriesOf(
  ctx: Pick<Work, 'chains' | 'db' | 'isCustomerPayment' | 'log'>,
  transfer: TransferRow,
  status: Exclude<RouteStatus, { state: 'claimable' }>,
): Promise<Deliveries | undefined> {
  if (status.state !== 'completed') return { messages: [] }
  if (status.message !== undefined) return { messages: [status.message] }
  const { destinationTxHash, received } = status
  const to = requireNetwork(transfer.toNetwork)
  const deliveries = await findDeliveries(ctx, transfer, {
    ...{ network: to, hash: destinationTxHash },
    token: received?.token ?? endOf(to, coinOf(to, transfer.toToken)).token.address,
    rawLeast: received?.rawAmount ?? transfer.rawOutMin ?? 0n,
  })
  if (deliveries === undefined)
    ctx.log.warn(
      { transferId: transfer.id, partner: transfer.partner, destinationTxHash },
      'a partner reports a delivery that is not on the chain; waiting',
    )
  return deliveries
}

interface Concluded {
  readonly status: Exclude<RouteStatus, { state: 'claimable' }>
  readonly refund: ProvenRefund | undefined
}

async function conclude(
  ctx: ActingCtx & Pick<Work, 'db' | 'log'>,
  tx: Tx,
  transfer: TransferRow,
  { status, refund }: Concluded,
): Promise<void> {
  const now = ctx.clock.now()
  if (status.state === 'completed') {
    const { received, destinationTxHash } = status
    if (received !== undefined && (received.isOther || received.rawAmount < (transfer.rawOutMin ?? 0n)))
      ctx.log.error({ transferId: transfer.id }, 'a partner delivered something else than it quoted')
    const receivedToken = received?.isOther === true ? received.token : undefined
    await markArrived(tx, transfer.id, { rawReceived: received?.rawAmount, receivedToken, destinationTxHash, now })
    return end(ctx, tx, transfer.id, undefined)
  }
  if (status.state === 'pending') return setNextPollAt(tx, transfer.id, nextPollTime(ctx, transfer.acceptedAt))
  if (refund === undefined || !(await isFree(tx, transfer, refund)))
    return awaitRefund(ctx, tx, transfer, status.partnerStatus)
  await markRefunded(tx, transfer.id, { hash: refund.hash, now })
  if (transfer.refundOverdueEventId !== null) await publishRefunded(ctx, tx, transfer, refund.hash)
  await end(ctx, tx, transfer.id, 'refunded')
}

/** Whether the transaction refunded this transfer, in addition to those that it already refunded. Takes the share of coin that only its block shows. */
async function isFree(tx: Tx, transfer: TransferRow, { hash, rawAmount, share }: ProvenRefund): Promise<boolean> {
  const taken = await listPaidBack(tx, transfer, { hash, isShared: share !== undefined })
  const failing = await listFailing(tx, transfer, refundedTogetherMax)
  if (!isRefundOf(rawAmount, { own: transfer.rawAmount, taken, failing })) return false
  return share === undefined || takeCoinShare(tx, transfer, share)
}

/** Counted from the partner's first failure report. */
const refundOverdueMs = 72 * 3_600_000
const overduePollMs = 3_600_000

/** Waits for the refund without limit: the money has left, and the partner may still deliver it. An overdue refund is reported once. */
async function awaitRefund(
  ctx: ActingCtx & Pick<Work, 'log'>,
  tx: Tx,
  transfer: TransferRow,
  partnerStatus: string,
): Promise<void> {
  const now = ctx.clock.now()
  const failingSince = await markFailing(tx, transfer.id, now)
  if (now.getTime() - failingSince.getTime() < refundOverdueMs)
    return setNextPollAt(tx, transfer.id, nextPollTime(ctx, transfer.acceptedAt))
  await setNextPollAt(tx, transfer.id, instantOf(now.getTime() + overduePollMs))
  if (transfer.refundOverdueEventId !== null) return
  const { id: transferId, partner, txHash } = transfer
  ctx.log.error({ transferId, partner, partnerStatus, txHash, failingSince }, 'the refund of a transfer is overdue')
  await publishRefundOverdue(ctx, tx, transfer, failingSince)
}

/** The candidates for the transfer's delivery, the best first; none if nothing is delivered yet. */
interface Claim extends Deliveries {
  readonly partnerStatus: string
}

/**
 * Whether one of the messages belongs to no other transfer; it is then assigned to this one. Identical burns differ
 * only by Circle's message, and deliveries of other partners by their place on the chain: each message counts for one
 * transfer.
 */
async function isItsOwn(
  ctx: Pick<Work, 'clock' | 'log'>,
  tx: Tx,
  transfer: TransferRow,
  { partnerStatus, ...deliveries }: Claim,
): Promise<boolean> {
  const { messages } = deliveries
  if (messages.length === 0) return true
  if (await takeDelivery(tx, transfer, deliveries)) return true
  ctx.log.error({ transferId: transfer.id, messages }, 'a partner returned the state of another transfer')
  await setPartnerStatus(tx, transfer.id, `${partnerStatus}: of another transfer`)
  await setNextPollAt(tx, transfer.id, nextPollTime(ctx, transfer.acceptedAt))
  return false
}

async function takeDelivery(tx: Tx, transfer: TransferRow, { messages, share }: Deliveries): Promise<boolean> {
  if (share !== undefined && !(await takeCoinShare(tx, transfer, share))) return false
  for (const message of messages) if (await takeMessage(tx, transfer, message)) return true
  return share !== undefined
}

/** Most claims of one delivery; a reverted one costs gas too. */
const claimsMax = 3

interface Claimable {
  readonly status: Extract<RouteStatus, { state: 'claimable' }>
  /** The steps of the transfer before its status was queried. */
  readonly before: Awaited<ReturnType<typeof listSteps>>
}

type Steps = Claimable['before']

/** A claim that ended after the partner was queried may have delivered the money, so it still counts as under way. */
function claimsOf(steps: Steps, before: Steps) {
  const claims = steps.filter(({ kind }) => kind === 'claim')
  const ended = new Set(before.filter(({ doneAt }) => doneAt !== null).map(({ position }) => position))
  return { count: claims.length, isUnderWay: claims.some(({ position }) => !ended.has(position)) }
}

/**
 * Sends the transaction that delivers the money on the other chain, from the master's address, which needs coin there. Anyone may send it,
 * and it works once; the partner's status decides.
 */
async function claim(ctx: Work, transfer: TransferRow, { status, before }: Claimable): Promise<void> {
  const { call, partnerStatus, message } = status
  const network = requireNetwork(transfer.toNetwork)
  const source = await ctx.findSource(ctx.db, forTenant(ctx, transfer).tenant, transfer.walletId)
  if (source === undefined || call.chainId !== network.chainId || call.value !== 0n)
    throw new Error('a claim that is not sent')
  const { tenant } = forTenant(ctx, transfer)
  const sender = source.masterAddress
  const payer = await readPayer(ctx, tenant, { network, source, payer: 'master' })
  const gasLimit = await triedGas(ctx, network, { ...call, from: sender })
  if (gasLimit !== undefined) await ctx.lanes.prepare(network, sender)
  await ctx.db.tx(async (tx) => {
    await lockPayer(tx, payer)
    const locked = await lockTransfer(tx, transfer.id)
    if (locked.endedAt !== null) return
    const messages = message === undefined ? [] : [message]
    if (!(await isItsOwn(ctx, tx, locked, { partnerStatus, messages }))) return
    const { count, isUnderWay } = claimsOf(await listSteps(tx, locked.id), before)
    if (!isUnderWay && count >= claimsMax) {
      ctx.log.error({ transferId: locked.id, claims: count }, 'claims of a delivery changed nothing; no more are sent')
      await setPartnerStatus(tx, locked.id, `${partnerStatus}: claims failed`)
      return setNextPollAt(tx, locked.id, nextPollTime(ctx, locked.acceptedAt))
    }
    const step = { kind: 'claim', toAddress: call.to, data: call.data, value: call.value } as const
    const of = { transferId: locked.id, payer }
    const isPaid = isUnderWay || (gasLimit !== undefined && (await storeAuxiliary(ctx, tx, of, { ...step, gasLimit })))
    const unsent = gasLimit === undefined ? ': claim refused' : isPaid ? '' : ': no gas to claim'
    await setPartnerStatus(tx, locked.id, `${partnerStatus}${unsent}`)
    await setNextPollAt(tx, locked.id, nextPollTime(ctx, locked.acceptedAt))
  })
}

/** Undefined while the chain would refuse the call: another sender has just sent it. */
async function triedGas(
  ctx: Pick<Work, 'chains'>,
  network: Network,
  call: PlannedCall & { readonly from: `0x${string}` },
): Promise<bigint | undefined> {
  const trial = await ctx.chains.on(network).tryCall(call)
  return trial.ok ? trial.gasLimit : undefined
}

/** Assigns a later step its transaction and nonce. The caller has locked the transfer and read that the step has none. */
export async function beginStep(
  { lanes }: Pick<Ctx, 'lanes'>,
  tx: Tx,
  step: StepRow,
  { network, gasLimit }: { readonly network: Network; readonly gasLimit: bigint },
): Promise<void> {
  const { transferId: subjectId, position: part, sender, toAddress: to, data, value } = step
  const planned = { network, to, data: bytesToHex(data), value, gasLimit, purpose: transferPurpose }
  const transactionId = await lanes.plan(tx, sender, planned)
  if (!(await assignStep(tx, step, transactionId))) throw new Error('a step of a transfer was given two transactions')
  await assignReservations(tx, { subjectId, part }, transactionId)
  tx.afterCommit(() => lanes.notify(network))
}
