import type { PaymentPayload } from '@purser/protocol'
import type { z } from 'zod'
import { isProblem } from '../../../../platform/errors.ts'
import type { ReceivingWallet } from '../../../wallets/index.ts'
import { answerOf } from '../../answer.ts'
import { judgeCredential, refuseOtherNetwork } from '../../credential.ts'
import { challengeIdOf } from '../../delivery/challenge-id.ts'
import { newPayment } from '../../new-payment.ts'
import { fingerprintOf, namePayment, type PaymentName } from '../../payment-identifier.ts'
import type { Ctx } from '../../ports.ts'
import { payableTokens, rawPrice, refuseBelowMinimum } from '../../price.ts'
import type { VerifiedPayment, VerifyRequest } from '../../schema.ts'
import { refuseByChain, resolveDeployment } from './on-chain.ts'
import { refuseDomainMismatch } from './token-domain.ts'

/** Verifies an x402 credential of scheme `exact` with a signed EIP-3009 authorization, and records the payment. */
export async function verifyExact(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  refuseOtherNetwork(request, wallet)

  const tokens = payableTokens(ctx, wallet)
  const signed = judgeCredential(ctx, request.credential, tokens, (token) => {
    const rawAmount = rawPrice(request.price, token)
    refuseBelowMinimum(ctx, wallet.network, token, rawAmount)
    return { network: wallet.network, token, rawAmount, payTo: wallet.address }
  })
  const name = await nameOf(ctx, signed.payload)
  await refuseDomainMismatch(ctx, wallet.network, signed.token)
  const judged = { ...signed, verdict: await resolveDeployment(ctx, wallet.network, signed.verdict) }
  const draft = newPayment(ctx, request, wallet, judged)
  const offered = await challengeIdOf(ctx, signed.payload)
  const delivery = draft.delivery === null ? null : { ...draft.delivery, challengeId: offered }
  const payment = { ...draft, ...name, delivery }
  const funds = await refuseByChain(ctx, wallet.network, judged, payment)
  await ctx.recordPayment({ ctx, payment, funds }).catch(async (error: unknown) => {
    // Of two payments that use one identifier at the same time, the second is refused because of the identifier.
    if (isProblem(error, 'duplicate-payment')) await nameOf(ctx, signed.payload)
    throw error
  })
  return answerOf(ctx, payment)
}

/** Returns the payment identifier (x402 extension payment-identifier); version 1 has none. */
function nameOf(ctx: Ctx, payment: PaymentPayload): Promise<PaymentName> {
  const extensions = payment.x402Version === 2 ? payment.extensions : undefined
  return namePayment(ctx, extensions, fingerprintOf(payment.payload))
}
