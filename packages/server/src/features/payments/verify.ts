import type { PaymentPayload } from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import { isProblem } from '../../platform/errors.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { answerOf } from './answer.ts'
import { isStub, judgeCredential, refused } from './credential.ts'
import { challengeIdOf } from './delivery/challenge-id.ts'
import { fail } from './errors.ts'
import { verifyMpp } from './mpp/verify.ts'
import { commonFields, newPayment } from './new-payment.ts'
import { refuseByChain, resolveDeployment } from './on-chain.ts'
import { fingerprintOf, namePayment, type PaymentName } from './payment-identifier.ts'
import { payableTokens, rawAmountOf, rawPrice, refuseBelowMinimum } from './price.ts'
import type { VerifiedPayment, VerifyRequest } from './schema.ts'
import type { NewPayment } from './store.ts'
import { refuseDomainMismatch } from './token-domain.ts'
import { selectWallet, walletsOf } from './which-wallet.ts'

/**
 * Verifies a credential and records the payment, once. The cheapest refusals come first; chain queries are batched with those of
 * other requests; the row, its event and the month's count commit together. A used credential is 409 whatever else is wrong with
 * it now, since its first use is the cause.
 */
export async function verifyPayment(ctx: Ctx, request: VerifyRequest): Promise<z.input<typeof VerifiedPayment>> {
  const wallet = selectWallet(await walletsOf(ctx, request), request)
  if (wallet === undefined) throw new Error('a request names a wallet')
  if (isStub(request.credential)) return recordStub(ctx, request, wallet)
  if (request.protocol === 'mpp') return verifyMpp(ctx, request, wallet)
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

async function recordStub(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  refuseOtherNetwork(request, wallet)
  if (ctx.tenant.environment !== 'test') throw refused('stub_not_allowed')
  const symbol = wallet.supportedTokens[0]
  const token = wallet.network.tokens.find((known) => known.symbol === symbol)
  if (token === undefined) throw fail('chain-not-supported')
  const { organisationId, environment } = ctx.tenant
  const common = commonFields(ctx, request, wallet, token)
  const payment: NewPayment = {
    ...common,
    protocolVersion: null,
    claimKey:
      request.credential === 'stub_payment_accepted'
        ? null
        : `stub:${organisationId}:${environment}:${request.credential}`,
    rawAmount: rawAmountOf(request.price, token),
    payer: null,
    scheme: 'stub',
    settlement: null,
    validBefore: null,
    status: 'settled',
    txHash: null,
    settlingAt: null,
    settledAt: common.createdAt,
  }
  await ctx.recordPayment({ ctx, payment })
  return answerOf(ctx, payment)
}

function refuseOtherNetwork(request: VerifyRequest, wallet: ReceivingWallet): void {
  if (request.network !== undefined && request.network !== wallet.network.caip2)
    throw refused('invalid_exact_evm_network_mismatch')
}
