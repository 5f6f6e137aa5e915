import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import { id, newId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import {
  lockSource,
  type OutgoingMovement,
  type PolicyOperation,
  policyWouldDeny,
  reservePolicy,
  underPolicy,
} from '../wallets/index.ts'
import { arrivedOf } from './arrived.ts'
import { fail } from './errors.ts'
import { transferPurpose } from './follow.ts'
import { coinsOf, planTransfer, type TransferPlan } from './plan.ts'
import type { NewTransfer, Transfer, TransferListQuery, TransferQuote } from './schema.ts'
import {
  type Answered,
  assignStep,
  findOwnTransfer,
  insertStep,
  insertTransfer,
  listTransfers,
  lockTransfer,
  markAnswered,
  type NewTransferRow,
  sumDrawnSince,
  type TransferId,
  type TransferPurpose,
  type TransferRow,
} from './store.ts'
import { waitForOutcome } from './waiting.ts'
import { type Coin, feeInToken } from './weigh.ts'

/** How often a wallet is weighed for one transfer while others draw on it. */
const attemptsMax = 8
/** Marks a refusal that is of the moment: others drew on the wallet since it was weighed. */
const overtaken = new Error('overtaken')

/** What a transfer would cost and how it would go; moves nothing. */
export async function quoteTransfer(ctx: Ctx, request: NewTransfer): Promise<TransferQuote> {
  const plan = await planTransfer(ctx, request)
  const amount = formatAmount(plan.rawAmount, plan.coin.decimals)
  return {
    fromChain: plan.fromChain,
    toChain: request.toChain,
    fromToken: request.fromToken,
    toToken: request.toToken,
    amount,
    toAmount: plan.quote === undefined ? amount : formatAmount(plan.quote.rawOut, plan.toCoin.decimals),
    feeAmount: formatAmount(plan.rawFee, plan.feeCoin.decimals),
    feeToken: plan.feeCoin.symbol,
    route: plan.route,
    routeReason: plan.routeReason,
    deniedBy: await policyWouldDeny(ctx, outgoing(request, plan)),
  }
}

/**
 * Moves money out of a managed wallet, once. The intent, its first nonce and the Idempotency-Key commit together before anything is
 * signed; from then on the lane brings it to the chain whatever happens to this process. Waits for a block for a while, and says
 * `pending` where none came: the end is then told by an event.
 */
export async function createTransfer(ctx: Ctx, request: NewTransfer): Promise<Transfer> {
  const kind = { operation: 'transfer', action: 'transfers.create' } as const
  return answer(ctx, await makeTransfer(ctx, request, kind), ctx.transferWaitMs)
}

/** As what a transfer is judged by the spend policy, and what the audit log calls it. */
export interface TransferKind {
  readonly operation: PolicyOperation
  readonly action: string
}

/** The same for a caller who waits for no block: he is answered that it is under way, so an event tells the end, whatever it is. */
export function queueTransfer(ctx: Ctx, request: NewTransfer, kind: TransferKind): Promise<TransferId> {
  return makeTransfer(ctx, request, { ...kind, answered: 'pending' })
}

async function makeTransfer(
  ctx: Ctx,
  request: NewTransfer,
  { operation, action, answered }: TransferKind & { readonly answered?: Answered },
): Promise<TransferId> {
  return notOvertaken(async () => {
    const plan = await planTransfer(ctx, request)
    await prepareTransfer(ctx, plan)
    return underPolicy(ctx, async (tx) => {
      const stored = await storeTransfer(ctx, tx, { request, plan, purpose: 'transfer', operation })
      if (answered !== undefined) await markAnswered(tx, stored, answered)
      const { fromToken, toAddress, amount } = request
      const details = { from: plan.source.id, to: toAddress, network: plan.network.name, token: fromToken, amount }
      await ctx.audit(tx, { action, target: stored, details })
      await ctx.idempotency?.commit(tx, stored)
      return stored
    })
  })
}

/** Does again what others overtook, from the weighing on: so that what is refused is refused for what there is. */
export async function notOvertaken<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === attemptsMax || !isProblem(error, 'insufficient-balance') || error.cause !== overtaken) throw error
    }
  }
}

/** Before `storeTransfer`, and outside any transaction: asks the chain for the first nonces of accounts that never sent. */
export async function prepareTransfer(ctx: Ctx, plan: TransferPlan): Promise<void> {
  for (const { sender } of plan.steps) await ctx.accountLanes.prepare(plan.network, sender)
}

/**
 * Stores a planned transfer, its steps and its first nonce in the caller's transaction; once that commits, the lanes carry it out.
 * Throws `insufficient-balance` where another request has taken the money since it was planned. A withdrawal's is not counted against the
 * spend policy: the withdrawal was.
 */
export async function storeTransfer(
  ctx: Ctx,
  tx: Tx,
  {
    request,
    plan,
    purpose,
    operation = 'transfer',
  }: { request: NewTransfer; plan: TransferPlan; purpose: TransferPurpose; operation?: PolicyOperation },
): Promise<TransferId> {
  const transferId = newId('wtx', ctx)
  await lockSource(tx, ctx.tenant, plan.source.id)
  // What pays for gas is weighed too, and a master pays for all its children: always after the wallet's own, so that none wait crosswise.
  if (plan.steps.some(({ sender }) => sender === plan.source.masterAddress))
    await lockSource(tx, ctx.tenant, plan.source.masterAddress)
  if (!(await hasRoom(tx, plan))) throw overtakenBy(plan)
  if (purpose === 'transfer')
    await reservePolicy(ctx, tx, { ...outgoing(request, plan), operation, subjectId: transferId })
  await insertTransfer(tx, ctx.tenant, { ...rowOf(ctx, transferId, request, plan), purpose })
  for (const [position, { to, ...step }] of plan.steps.entries())
    await insertStep(tx, { transferId, position, ...step, toAddress: to })
  const [first] = plan.steps
  if (first === undefined) throw new Error('a transfer without steps')
  const { network } = plan
  const transactionId = await ctx.accountLanes.plan(tx, first.sender, { ...first, network, purpose: transferPurpose })
  await assignStep(tx, { transferId, position: 0 }, transactionId)
  tx.afterCommit(() => ctx.accountLanes.nudge(network))
  return transferId
}

/** What the wallet's spend policy judges. */
function outgoing({ toAddress }: NewTransfer, { source, coin, rawAmount }: TransferPlan): OutgoingMovement {
  const { symbol: token, decimals } = coin
  return {
    masterWalletId: source.masterWalletId,
    operation: 'transfer',
    token,
    rawAmount,
    decimals,
    recipient: toAddress,
  }
}

/**
 * Whether what the wallet was found to have still covers this transfer, under the locks of those who pay. Everything that came since
 * counts, also what a block took in meanwhile: the balance that was read may be from before it.
 */
async function hasRoom(tx: Tx, { source, network, coin, steps, room }: TransferPlan): Promise<boolean> {
  const { left, since, maxFee } = room
  const place = { network: network.name, source: source.address, master: source.masterAddress, token: coin.symbol }
  const drawn = await sumDrawnSince(tx, { ...place, since, maxFee })
  if (network.nativeCoin === null) return left.token >= drawn.token + feeInToken(drawn.source, 1n, coin.decimals)
  if (coin.address !== undefined && left.token < drawn.token) return false
  if (left.native < drawn.source) return false
  return !steps.some(({ kind }) => kind === 'top-up') || left.masterNative >= drawn.master
}

/** So many others draw on the wallet that it was never found at rest; none of them is kept waiting by this one. */
function overtakenBy({ coin, rawAmount, rawFee, feeCoin }: TransferPlan): Error {
  const told = (of: Coin, raw: bigint) => ({
    token: of.symbol,
    required: formatAmount(raw, of.decimals),
    available: '0',
  })
  const isOne = coin.symbol === feeCoin.symbol
  const balances = isOne ? [told(coin, rawAmount + rawFee)] : [told(coin, rawAmount), told(feeCoin, rawFee)]
  return fail('insufficient-balance', { balances }, overtaken)
}

function rowOf(ctx: Ctx, transferId: TransferId, request: NewTransfer, plan: TransferPlan): NewTransferRow {
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
    createdAt: ctx.clock.now(),
  }
}

/** The present state of a transfer, for a repeat of a request whose answer was never given: it waits as the first one did. */
export function transferState(ctx: Ctx, transferId: string): Promise<Transfer> {
  return answer(ctx, id('wtx').parse(transferId), ctx.transferWaitMs)
}

async function answer(ctx: Ctx, transferId: TransferId, waitMs: number): Promise<Transfer> {
  await waitForOutcome(ctx.db, transferId, waitMs)
  const row = await ctx.db.tx(async (tx) => {
    const locked = await lockTransfer(tx, transferId)
    const { status, reason } = locked
    await markAnswered(tx, transferId, reason !== null ? 'reverted' : status === 'confirmed' ? 'confirmed' : 'pending')
    return locked
  })
  if (row.reason !== null && !isOnItsWay(row))
    throw fail('transfer-reverted', { transferId, txHash: row.txHash, reason: row.reason })
  return shown(row)
}

/** A bridge takes minutes: whoever asked is answered as soon as a block has its first half. */
function isOnItsWay({ route, leftAt }: TransferRow): boolean {
  return route === 'partner-bridge' && leftAt !== null
}

export async function getTransfer(ctx: Ctx, transferId: TransferId): Promise<Transfer> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  if (row === undefined) throw fail('transfer-not-found')
  return shown(row)
}

export async function pageOfTransfers(ctx: Ctx, query: z.output<typeof TransferListQuery>): Promise<Page<Transfer>> {
  const { limit, cursor, fromWalletId } = query
  const rows = await listTransfers(ctx.db, ctx.tenant, { limit, after: openCursor(cursor), walletId: fromWalletId })
  const page = pageOf(rows, limit, (row) => row.id)
  return { items: page.items.map(shown), next: page.next }
}

function shown(row: TransferRow): Transfer {
  const { feeSymbol, feeDecimals } = coinsOf(row)
  const amount = formatAmount(row.rawAmount, row.decimals)
  return {
    id: row.id,
    fromWalletId: row.walletId,
    toAddress: row.toAddress,
    txHash: row.txHash,
    fromChain: row.fromChain,
    toChain: row.toChain,
    fromToken: row.fromToken,
    toToken: row.toToken,
    amount,
    ...arrivedOf(row),
    feeAmount: formatAmount(row.rawFee, feeDecimals),
    feeToken: feeSymbol,
    route: row.route,
    routeReason: row.routeReason,
    status: row.status,
    reason: row.status === 'failed' ? row.reason : null,
    refundTxHash: row.refundTxHash,
    createdAt: row.createdAt,
    confirmedAt: row.confirmedAt,
  }
}
