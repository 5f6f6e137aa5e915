import type { Hex } from '@purser/protocol'
import type { z } from 'zod'
import type { SignedTransaction, TempoTransaction } from '../../../../chain/port.ts'
import { unixSeconds } from '../../../../platform/clock.ts'
import { fail } from '../../errors.ts'
import { readFunds } from '../../funds.ts'
import { refusedMpp } from '../../mpp/refused.ts'
import { expiryOf } from '../../new-payment.ts'
import type { Ctx } from '../../ports.ts'
import type { VerifiedPayment } from '../../schema.ts'
import type { NewPayment } from '../../store.ts'
import { sentenceOf } from './outcome.ts'
import { type TempoPurchase, tempoFields } from './payment.ts'
import { sendAndWait } from './send.ts'
import { feeTokenOf } from './sponsor.ts'
import { isUsed } from './store.ts'
import { whyNotTaken } from './transaction.ts'

/**
 * Pull: the payer's signed transaction is checked, simulated, recorded and only then broadcast. If a process dies in between, the
 * row has its bytes and the follower completes it. A refusal before the row exists costs the payer nothing.
 */
export async function payByTransaction(
  ctx: Ctx,
  purchase: TempoPurchase,
  raw: Hex,
): Promise<z.input<typeof VerifiedPayment>> {
  const transaction = await readTransaction(ctx, raw)
  const refusal = whyNotTaken(transaction, purchase.owed, BigInt(unixSeconds(ctx.clock.now())))
  if (refusal !== undefined)
    throw await refusedOrUsed(ctx, purchase, () => refusedMpp(refusal.problem, refusal.message))
  const trial = await ctx.chains.on(purchase.network).tryTempo(transaction)
  if (!trial.ok) {
    const message = sentenceOf(`transaction_refused_${trial.reason}`)
    throw await refusedOrUsed(ctx, purchase, () => refusedMpp('verification-failed', message))
  }
  const final = await completed(ctx, purchase, transaction)
  const payment = pulledPayment(ctx, purchase, transaction, final)
  await ctx.recordPayment({ ctx, payment, funds: await readFunds(ctx, payment) })
  return sendAndWait(ctx, purchase.network, { id: payment.id, raw: final.raw })
}

async function readTransaction(ctx: Ctx, raw: Hex): Promise<TempoTransaction> {
  const decoded = await ctx.tempoTransactions.decode(raw)
  if (!decoded.ok) throw refusedMpp('invalid-payload', decoded.fault)
  return decoded.transaction
}

/** Returns 409 for a used credential even if it has other faults now, because those may follow from its first use. */
async function refusedOrUsed(ctx: Ctx, purchase: TempoPurchase, refusal: () => Error): Promise<Error> {
  return (await isUsed(ctx.db, purchase.challenge.id, null)) ? fail('duplicate-payment') : refusal()
}

/**
 * Returns the bytes for the chain. The sponsor's signature for the fee is only in these bytes, which go only to the
 * node.
 */
async function completed(ctx: Ctx, purchase: TempoPurchase, transaction: TempoTransaction): Promise<SignedTransaction> {
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
  ctx: Ctx,
  purchase: TempoPurchase,
  transaction: TempoTransaction,
  final: SignedTransaction,
): NewPayment {
  const [call] = transaction.calls
  const { validBefore } = transaction
  if (call === undefined || validBefore === undefined) throw new Error('the transaction was checked')
  return {
    ...tempoFields(ctx, purchase, { hash: final.hash, payer: transaction.sender }),
    settlement: {
      kind: 'tempo',
      raw: final.raw,
      from: transaction.sender,
      memo: `0x${call.data.slice(-64)}`,
      validBefore: validBefore.toString(),
      sponsoredGas: transaction.feePaidBy === 'sponsor' ? transaction.gasLimit.toString() : '0',
    },
    validBefore: expiryOf(validBefore),
    status: 'settling',
    settlingAt: ctx.clock.now(),
    settledAt: null,
  }
}
