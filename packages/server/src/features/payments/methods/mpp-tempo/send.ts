import type { Hex, Network } from '@purser/protocol'
import type { z } from 'zod'
import type { PaymentId } from '../../../../platform/ids.ts'
import { pause } from '../../../../platform/work/loop.ts'
import { answerOf } from '../../answer.ts'
import type { Ctx } from '../../ports.ts'
import type { VerifiedPayment } from '../../schema.ts'
import { findPayment } from '../../store.ts'
import { followPayment } from './follow.ts'
import { findSent, markRefused } from './store.ts'
import { refuseUnpaid } from './unpaid.ts'

const pollMs = 150

/**
 * Broadcasts a recorded payment and waits for the chain's outcome, no longer than a settle call would. From here on a
 * failure is never the payer's fault. If the outcome stays open, the response is that settlement is pending, and the
 * follower completes it.
 */
export async function sendAndWait(
  ctx: Ctx,
  network: Network,
  payment: { readonly id: PaymentId; readonly raw: Hex },
): Promise<z.input<typeof VerifiedPayment>> {
  await ctx.witness.cover()
  const sent = await ctx.chains.on(network).sendTempo(payment.raw)
  if (sent.outcome === 'refused') await markRefused(ctx.db, payment.id, `transaction_refused_${sent.reason}`)
  else await waitForChain(ctx, network, payment.id)
  const row = await findPayment(ctx.db, ctx.tenant, payment.id)
  if (row === undefined) throw new Error('a payment disappeared')
  refuseUnpaid(row)
  return answerOf(ctx, row)
}

async function waitForChain(ctx: Ctx, network: Network, paymentId: PaymentId): Promise<void> {
  const until = performance.now() + ctx.settleWaitMs
  for (;;) {
    const row = await findSent(ctx.db, ctx.tenant, paymentId)
    if (row === undefined) return
    const isOver = await followPayment(ctx, network, row).catch((error: unknown) => {
      ctx.log.warn({ err: error, paymentId }, 'the chain could not be read for a payment; it stays open')
      return false
    })
    if (isOver || performance.now() >= until) return
    await pause(pollMs, new AbortController().signal)
  }
}
