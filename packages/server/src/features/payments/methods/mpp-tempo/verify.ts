import {
  type Address,
  checksumAddress,
  type Hex,
  isTempo,
  type Network,
  parsePayerSource,
  parseTempoChargeRequest,
  parseTempoPayload,
  tempoChargeRequest,
  uint256Max,
} from '@purser/protocol'
import type { z } from 'zod'
import type { Receipt, SignedTransaction, TempoTransaction } from '../../../../chain/port.ts'
import { unixSeconds } from '../../../../platform/clock.ts'
import { isProblem } from '../../../../platform/errors.ts'
import type { PaymentId } from '../../../../platform/ids.ts'
import { pollUntil } from '../../../../platform/work/poll-until.ts'
import { fail, refusedMpp } from '../../errors.ts'
import { readFunds } from '../../funds.ts'
import { commonFields, expiryOf, transactionClaim, transferClaim } from '../../new-payment.ts'
import type { Ctx } from '../../ports.ts'
import { refuseUnpaid, responseOf, underpriced, underpricedMark } from '../../record.ts'
import type { VerifiedPayment } from '../../schema.ts'
import { recordUncounted } from '../../settlement-outcome.ts'
import { findPayment, listTakenClaims, type NewPayment } from '../../store.ts'
import { filterUnmined } from '../../unmined-payments.ts'
import type { MppMethod, MppPurchase } from '../method.ts'
import { failuresSince, followPayment, refusalOf, sentenceOf } from './follow.ts'
import { type BoundTransfer, paidBy, type TempoPurchase } from './paid-by.ts'
import { hasFailed } from './sponsored-store.ts'
import { findPurchase, findSent, isUsed } from './store.ts'
import { feeTokenOf, type Owed, sponsorsFees, whyNotTaken } from './transaction.ts'

/** Method `tempo` with the intent `charge`: a transaction that the payer signed, or one that is on chain already. */
export const tempoCharge: MppMethod = {
  name: 'tempo',
  isOn: isTempo,
  paysFee: sponsorsFees,
  // The service can pay the fee only of a transaction that it sends itself; clients push unless the challenge offers it.
  requestOf: (requested, _, feePayer) =>
    tempoChargeRequest(feePayer ? { ...requested, feePayer, supportedModes: ['pull'] } : requested),
  parse(request) {
    const parsed = parseTempoChargeRequest(request)
    return parsed === undefined ? undefined : { ...parsed, feePayer: parsed.feePayer ?? false }
  },
  isSent: ({ type }) => type === 'hash',
  verify,
}

/**
 * Accepts the payment of a genuine `tempo/charge` challenge: the payer's signed transaction, which is recorded and then broadcast
 * (pull), or the hash of one that is on chain (push). One challenge and one transaction buy once. A failing node is 503 and costs
 * the payer nothing.
 * Source: draft-tempo-charge-00, "Credential payloads".
 */
async function verify(ctx: Ctx, purchase: MppPurchase): Promise<z.input<typeof VerifiedPayment>> {
  const parsed = parseTempoPayload(purchase.payload)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: parsed.fault.path })
  const { value: payload } = parsed
  const owed = owedFor(ctx, purchase)
  if (payload.type === 'transaction') return payByTransaction(ctx, { ...purchase, owed }, payload.signature)
  if (payload.type === 'hash') return payByHash(ctx, { ...purchase, owed }, payload.hash)
  throw refusedMpp('invalid-payload', 'a proof pays for nothing but a price of zero')
}

/** Gas whose cost in billionths of a US dollar is the price of one unit in attodollars. */
const gasOfPrice = 1_000_000_000n

function owedFor(ctx: Pick<Ctx, 'gasPrices'>, purchase: MppPurchase): Owed {
  const { challenge, network, token, wallet, rawAmount, feePayer } = purchase
  return {
    chainId: network.chainId,
    token: token.address,
    recipient: wallet.address,
    amount: rawAmount,
    realm: challenge.realm,
    challengeId: challenge.id,
    payer: payerOf(purchase),
    feePayer,
    // A fee of twice the base fee, plus the tip that nodes suggest, gets a transaction into a block.
    sponsoredTipMax: ctx.gasPrices.costOf(network, gasOfPrice),
  }
}

function payerOf({ source, network }: MppPurchase): Address | undefined {
  if (source === undefined) return undefined
  const payer = parsePayerSource(source)
  if (payer === undefined || payer.chainId !== network.chainId)
    throw refusedMpp('verification-failed', 'the source is not an account of this chain')
  return payer.address
}

/**
 * Pull: the payer's signed transaction is checked, simulated, recorded and only then broadcast. If a process dies in between, the
 * row has its bytes and the follower completes it. A refusal before the row exists costs the payer nothing.
 */
async function payByTransaction(ctx: Ctx, purchase: TempoPurchase, raw: Hex): Promise<z.input<typeof VerifiedPayment>> {
  const transaction = await readTransaction(ctx, raw)
  const refusal = whyNotTaken(transaction, purchase.owed, BigInt(unixSeconds(ctx.clock.now())))
  if (refusal !== undefined)
    throw await refusedOrUsed(ctx, purchase, () => refusedMpp(refusal.problem, refusal.message))
  const trial = await ctx.chains.on(purchase.network).tryTempo(transaction)
  if (!trial.ok) {
    const message = sentenceOf(refusalOf(trial))
    throw await refusedOrUsed(ctx, purchase, () => refusedMpp('verification-failed', message))
  }
  if (transaction.feePaidBy === 'sponsor') await refuseSponsored(ctx, purchase.network, transaction.sender)
  const final = await completed(ctx, purchase, transaction)
  const payment = pulledPayment(ctx, purchase, transaction, final)
  await ctx.recordPayment({ ctx, payment, funds: await readFunds(ctx, payment) })
  return sendAndWait(ctx, purchase.network, { id: payment.id, raw: final.raw, txHash: final.hash })
}

/** Refuses a payer whose sponsored transaction failed at the sponsor's expense: it can pay the fee of its next ones itself. */
async function refuseSponsored(ctx: Pick<Ctx, 'clock' | 'db'>, network: Network, payer: Address): Promise<void> {
  if (await hasFailed(ctx.db, { network: network.name, payer }, failuresSince(ctx.clock)))
    throw refusedMpp(
      'verification-failed',
      'a sponsored transaction of this payer failed in the last day; sign one that pays its own fee',
    )
}

async function readTransaction(ctx: Pick<Ctx, 'tempoTransactions'>, raw: Hex): Promise<TempoTransaction> {
  const decoded = await ctx.tempoTransactions.decode(raw)
  if (!decoded.ok) throw refusedMpp('invalid-payload', decoded.fault)
  return decoded.transaction
}

/** Returns 409 for a used credential even if it has other faults now, because those may follow from its first use. */
async function refusedOrUsed(ctx: Pick<Ctx, 'db'>, purchase: TempoPurchase, refusal: () => Error): Promise<Error> {
  return (await isUsed(ctx.db, purchase.challenge.id)) ? fail('duplicate-payment') : refusal()
}

/**
 * Returns the bytes for the chain. The sponsor's signature for the fee is only in these bytes, which go only to the
 * node.
 */
async function completed(
  ctx: Pick<Ctx, 'feeSponsor'>,
  purchase: TempoPurchase,
  transaction: TempoTransaction,
): Promise<SignedTransaction> {
  if (transaction.feePaidBy === 'sender') {
    if (transaction.hash === undefined) throw new Error('a final transaction has a hash')
    return { raw: transaction.raw, hash: transaction.hash }
  }
  const signer = ctx.feeSponsor?.signer
  const token = feeTokenOf(purchase.network)
  if (signer === undefined || token === undefined)
    throw refusedMpp('verification-failed', 'fees are no longer paid for payers; ask for a fresh challenge')
  if (signer.address.toLowerCase() === transaction.sender.toLowerCase())
    throw refusedMpp('verification-failed', 'the sponsor cannot pay its own fee this way')
  return signer.signTempoFeePayer(transaction, token.address)
}

function pulledPayment(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'random' | 'signatures'>,
  purchase: TempoPurchase,
  transaction: TempoTransaction,
  final: SignedTransaction,
): NewPayment {
  const [call] = transaction.calls
  const { validBefore, nonceKey, nonce } = transaction
  if (call === undefined || validBefore === undefined) throw new Error('the transaction was checked')
  return {
    ...tempoFields(ctx, purchase, { hash: final.hash, payer: transaction.sender }),
    claimKey: transactionClaim(purchase.network, final.hash),
    settlement: {
      kind: 'tempo',
      raw: final.raw,
      from: transaction.sender,
      memo: `0x${call.data.slice(-64)}`,
      validBefore: validBefore.toString(),
      sponsoredGas: transaction.feePaidBy === 'sponsor' ? transaction.gasLimit.toString() : '0',
      ...(nonceKey !== uint256Max && { nonceName: `${nonceKey}/${nonce}` }),
    },
    validBefore: expiryOf(validBefore),
    status: 'settling',
    settlingAt: ctx.clock.now(),
    settledAt: null,
  }
}

/**
 * Push: the payer broadcasts the transaction and sends its hash. Hashes are public, so the transfer must carry a memo made for
 * this challenge; a plain transfer proves nothing. It is recorded only once it is final on chain. The money has arrived by then,
 * so a bound transfer is credited even if the challenge required a transaction, has expired, or requested another price than now.
 */
async function payByHash(ctx: Ctx, purchase: TempoPurchase, hash: Hex): Promise<z.input<typeof VerifiedPayment>> {
  const { network, challenge, isUnderpriced } = purchase
  const used = await findPurchase(ctx.db, challenge.id)
  if (used?.status === null || used?.txHash?.toLowerCase() === hash.toLowerCase()) throw fail('duplicate-payment')
  if ((await listTakenClaims(ctx.db, [transactionClaim(network, hash)])).size > 0) throw fail('duplicate-payment')
  if (used !== undefined) throw await creditedAgain(ctx, purchase, hash)
  const { receipt, transfers } = await paidBy(ctx, purchase, hash)
  const [first, ...further] = transfers.map((transfer) => pushedPayment(ctx, purchase, receipt, transfer))
  if (first === undefined) throw new Error('a paid challenge has no transfer')
  // The further ones come first: after a crash the hash is shown again, because the challenge has bought nothing yet.
  await creditAll(ctx, further)
  try {
    await ctx.recordPayment({ ctx: isUnderpriced ? withMark(ctx) : ctx, payment: first })
  } catch (error) {
    // Another transaction may have paid for the challenge meanwhile. If it was this one, its transfer is credited already.
    if (isProblem(error, 'duplicate-payment')) await creditAll(ctx, [first])
    throw error
  }
  if (isUnderpriced) throw underpriced()
  // The seller delivers for this response: a restored database that lost the payment would accept the hash again.
  await ctx.witness.cover()
  return responseOf(ctx, first)
}

/**
 * Credits what a transaction pays for a challenge that another transaction has used, also if that one failed; returns the refusal, since it buys
 * nothing more. It reads the chain once: the payer of a real transfer can show it again.
 */
async function creditedAgain(ctx: Ctx, purchase: TempoPurchase, hash: Hex): Promise<Error> {
  const { receipt, transfers } = await paidBy({ ...ctx, settleWaitMs: 0 }, purchase, hash)
  const payments = transfers.map((transfer) => pushedPayment(ctx, purchase, receipt, transfer))
  await creditAll(ctx, payments)
  return fail('duplicate-payment')
}

function pushedPayment(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'random' | 'signatures'>,
  purchase: TempoPurchase,
  { transactionHash: hash }: Receipt,
  { from, amount, position }: BoundTransfer,
): NewPayment {
  return {
    ...tempoFields(ctx, purchase, { hash, payer: from }),
    claimKey: transferClaim(purchase.network, hash, position),
    rawAmount: amount,
    settlement: null,
    validBefore: null,
    status: 'settled',
    settlingAt: null,
    settledAt: ctx.clock.now(),
    ...(purchase.isUnderpriced && { delivery: null }),
  }
}

/** Credits money that was sent for a challenge in addition to what it bought with, so that it can be refunded. A transfer is credited once. */
async function creditAll(ctx: Ctx, payments: readonly NewPayment[]): Promise<void> {
  const own = { ...ctx, idempotency: undefined }
  const outcomes = await Promise.allSettled(
    payments.map((payment) =>
      ctx.recordPayment({ ctx: own, payment: { ...payment, challengeId: null, delivery: null } }),
    ),
  )
  for (const outcome of outcomes)
    if (outcome.status === 'rejected' && !isProblem(outcome.reason, 'duplicate-payment')) throw outcome.reason
}

/**
 * Ties the Idempotency-Key to the underpriced payment, so that a repeat is refused too, also after a crash before the
 * refusal is stored.
 */
function withMark(ctx: Ctx): Ctx {
  const { idempotency } = ctx
  if (idempotency === undefined) return ctx
  const commit: typeof idempotency.commit = (tx, id) => idempotency.commit(tx, `${id}${underpricedMark}`)
  return { ...ctx, idempotency: { ...idempotency, commit } }
}

const receiptPollMs = 150

/**
 * Broadcasts a recorded payment and waits for the chain's outcome, no longer than a settle call would. A refusal by the nodes counts only if by a majority
 * no block includes the transaction. From here on a
 * failure is never the payer's fault. If the outcome stays open, the response is that settlement is pending, and the
 * follower completes it.
 */
async function sendAndWait(
  ctx: Ctx,
  network: Network,
  payment: { readonly id: PaymentId; readonly raw: Hex; readonly txHash: Hex },
): Promise<z.input<typeof VerifiedPayment>> {
  await ctx.witness.cover()
  const [sent] = await ctx.chains.on(network).sendTempo([payment.raw])
  const refused = sent?.outcome === 'refused' ? [{ ...payment, reason: refusalOf(sent) }] : []
  // Nodes that have the transaction in a block already may refuse it.
  const unmined = refused.length === 0 ? refused : await filterUnmined(ctx, network.name, refused)
  if (unmined.length > 0) await ctx.db.tx((tx) => recordUncounted(tx, unmined))
  else await waitForChain(ctx, network, payment.id)
  const row = await findPayment(ctx.db, ctx.tenant, payment.id)
  if (row === undefined) throw new Error('a payment disappeared')
  refuseUnpaid(row)
  return responseOf(ctx, row)
}

/** The preferred node may be ahead of the others by a block, so that all are searched only at the first, second, fourth and eighth read, and so on. */
async function waitForChain(ctx: Ctx, network: Network, paymentId: PaymentId): Promise<void> {
  let reads = 0
  let nextOfAll = 1
  const follow = async (): Promise<boolean> => {
    const row = await findSent(ctx.db, ctx.tenant, paymentId)
    if (row === undefined) return true
    reads += 1
    const isOfAll = reads === nextOfAll
    if (isOfAll) nextOfAll *= 2
    return followPayment(ctx, network, row, isOfAll ? 'all' : 'preferred').catch((error: unknown) => {
      ctx.log.warn({ err: error, paymentId }, 'the chain could not be read for a payment; it stays open')
      return false
    })
  }
  await pollUntil({ waitMs: ctx.settleWaitMs, pollMs: receiptPollMs }, follow, (isOver) => isOver)
}

/** Returns the fields that the rows of pulled and pushed payments share. */
function tempoFields(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'random' | 'signatures'>,
  { request, wallet, token, challenge, rawAmount }: TempoPurchase,
  { hash, payer }: { readonly hash: Hex; readonly payer: Address },
) {
  return {
    ...commonFields(ctx, request, wallet, token),
    protocol: 'mpp',
    protocolVersion: null,
    scheme: 'charge',
    challengeId: challenge.id,
    rawAmount,
    payer: checksumAddress(payer, ctx.signatures.keccak),
    txHash: hash,
  } as const satisfies Partial<NewPayment>
}
