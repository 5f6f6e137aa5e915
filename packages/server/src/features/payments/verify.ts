import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { getPayableWallet, type ReceivingWallet } from '../wallets/index.ts'
import { isStub, judgeCredential, refused } from './credential.ts'
import { fail } from './errors.ts'
import { commonFields, newPayment } from './new-payment.ts'
import { refuseByChain, withAccountAsItIs } from './on-chain.ts'
import { payableTokens, rawPrice, refuseBelowMinimum } from './price.ts'
import type { VerifiedPayment, VerifyRequest } from './schema.ts'
import { findPayment, type NewPayment, type PaymentRow } from './store.ts'
import { refuseStrangeToken } from './token-domain.ts'

/**
 * Verifies a credential and records the payment, once. Cheapest refusals first; what the chain says is asked together
 * with other requests; the row, its event and the month's count commit together. A credential that was used is 409
 * whatever else is wrong with it by now, since the first use is why.
 */
export async function verifyPayment(ctx: Ctx, request: VerifyRequest): Promise<z.input<typeof VerifiedPayment>> {
  const wallet = await getPayableWallet(ctx, request.walletId)
  if (request.network !== undefined && request.network !== wallet.network.caip2)
    throw refused('invalid_exact_evm_network_mismatch')
  if (isStub(request.credential)) return recordStub(ctx, request, wallet)
  if (request.protocol === 'mpp') throw refused('unsupported_scheme')

  const tokens = payableTokens(wallet)
  const signed = judgeCredential(ctx, request.credential, tokens, (token) => {
    const rawAmount = rawPrice(request.price, token)
    refuseBelowMinimum(ctx, rawAmount, token)
    return { network: wallet.network, token, rawAmount, payTo: wallet.address }
  })
  await refuseStrangeToken(ctx, wallet.network, signed.token)
  const judged = { ...signed, verdict: await withAccountAsItIs(ctx, wallet.network, signed.verdict) }
  const payment = newPayment(ctx, request, wallet, judged)
  await refuseByChain(ctx, wallet.network, judged, payment)
  await ctx.recordPayment({ ctx, payment })
  return answerOf(ctx, payment)
}

/** The answer that verifying this payment gives, for a repeat whose first answer was never sent. */
export async function verifiedAnswer(ctx: Ctx, paymentId: string): Promise<z.input<typeof VerifiedPayment>> {
  const row = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  if (row === undefined) throw fail('payment-not-found')
  return answerOf(ctx, row)
}

/** What the caller of verify reads of a payment. */
export function answerOf(
  ctx: Ctx,
  payment: Pick<
    PaymentRow,
    'id' | 'protocol' | 'rawAmount' | 'decimals' | 'token' | 'payer' | 'settledAt' | 'status'
  > & { txHash?: string | null },
): z.input<typeof VerifiedPayment> {
  return {
    valid: true,
    paymentId: payment.id,
    protocol: payment.protocol,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    coin: payment.token,
    payer: payment.payer,
    txHash: payment.txHash ?? null,
    settledAt: payment.settledAt,
    settlementPending: payment.status === 'verified' || payment.status === 'settling',
    settlementToken: ctx.settlementTokens.mint(payment.id),
  }
}

async function recordStub(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
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
    rawAmount: rawPrice(request.price, token),
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
