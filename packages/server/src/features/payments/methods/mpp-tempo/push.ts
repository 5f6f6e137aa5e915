import { type Address, decodeTransferWithMemoLog, type Hex, sameAddress } from '@purser/protocol'
import type { z } from 'zod'
import { fail as failChain } from '../../../../chain/errors.ts'
import type { Log, Receipt } from '../../../../chain/port.ts'
import { pause } from '../../../../platform/work/loop.ts'
import { answerOf, underpriced, underpricedMark } from '../../answer.ts'
import { fail } from '../../errors.ts'
import { refusedMpp } from '../../mpp/refused.ts'
import type { Ctx } from '../../ports.ts'
import type { VerifiedPayment } from '../../schema.ts'
import type { NewPayment } from '../../store.ts'
import { type TempoPurchase, tempoFields, transactionClaim } from './payment.ts'
import { isUsed } from './store.ts'
import { type Owed, type Refusal, whyNotTransfer } from './transaction.ts'

/** Maximum milliseconds of waiting for a receipt: this node may be a block behind the payer's node. */
const lookMsMax = 2_000
const pollMs = 200

/**
 * Push: the payer broadcasts the transaction and sends its hash. Hashes are public, so the transfer must carry a memo made for
 * this challenge; a plain transfer proves nothing. It is recorded only once it is final on chain. The money has arrived by then,
 * so a bound transfer is credited even if the challenge required a transaction, has expired, or requested another price than now.
 */
export async function payByHash(
  ctx: Ctx,
  purchase: TempoPurchase,
  hash: Hex,
): Promise<z.input<typeof VerifiedPayment>> {
  const { network, challenge, owed, isUnderpriced } = purchase
  if (await isUsed(ctx.db, challenge.id, transactionClaim(network, hash))) throw fail('duplicate-payment')
  const receipt = await finalReceipt(ctx, purchase, hash)
  if (receipt === undefined)
    throw refusedMpp('verification-failed', 'no such transaction is on chain yet; show the hash again in a moment')
  if (receipt.status === 'reverted') throw refusedMpp('verification-failed', 'the transaction reverted')
  const paid = paidIn(receipt.logs, owed)
  if ('problem' in paid) throw refusedMpp(paid.problem, paid.message)
  const now = ctx.clock.now()
  const payment: NewPayment = {
    ...tempoFields(ctx, purchase, { hash: receipt.transactionHash, payer: paid.from }),
    rawAmount: paid.amount,
    settlement: null,
    validBefore: null,
    status: 'settled',
    settlingAt: null,
    settledAt: now,
    ...(isUnderpriced && { delivery: null }),
  }
  await ctx.recordPayment({ ctx: isUnderpriced ? withMark(ctx) : ctx, payment })
  if (isUnderpriced) throw underpriced()
  return answerOf(ctx, payment)
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

/**
 * Returns the receipt that a majority confirms. One node's receipt is not enough: the payer may have invented the hash,
 * and the node the transfer. If no majority confirms it in time it throws `chain-unavailable`: a refusal would make the
 * payer of a real transfer pay again.
 */
async function finalReceipt(ctx: Ctx, { network }: TempoPurchase, hash: Hex): Promise<Receipt | undefined> {
  const until = performance.now() + Math.min(lookMsMax, ctx.settleWaitMs)
  const chain = ctx.chains.on(network)
  for (;;) {
    const receipt = await chain.receipt(hash)
    if (receipt !== undefined && (await chain.confirmReceipts([receipt]))[0] === 'yes') return receipt
    if (performance.now() >= until) {
      if (receipt === undefined) return undefined
      throw failChain('chain-unavailable', {}, new Error('too few nodes agree about a receipt'))
    }
    await pause(pollMs, new AbortController().signal)
  }
}

/** Returns who paid, from the logs of the challenge's token; otherwise the fault of the closest transfer. */
function paidIn(logs: readonly Log[], owed: Owed): { readonly from: Address; readonly amount: bigint } | Refusal {
  const transfers = logs
    .filter((log) => sameAddress(log.address, owed.token))
    .flatMap((log) => decodeTransferWithMemoLog(log) ?? [])
    .filter(({ from }) => owed.payer === undefined || sameAddress(from, owed.payer))
  const judged = transfers.map((transfer) => ({ transfer, refusal: whyNotTransfer(transfer, owed) }))
  const good = judged.find(({ refusal }) => refusal === undefined)
  if (good !== undefined) return good.transfer
  const message = "the transaction makes no transfer of the challenge's token with a memo"
  return judged[0]?.refusal ?? { problem: 'verification-failed', message }
}
