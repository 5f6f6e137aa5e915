import type { z } from 'zod'
import type { ReceivingWallet } from '../../../wallets/index.ts'
import { rawAmountOf, refused, refuseOtherNetwork } from '../../credential.ts'
import { fail } from '../../errors.ts'
import { commonFields, settledAtOnce } from '../../new-payment.ts'
import type { Ctx } from '../../ports.ts'
import { responseOf } from '../../record.ts'
import type { VerifiedPayment, VerifyRequest } from '../../schema.ts'
import type { NewPayment } from '../../store.ts'

/** Records the payment of a stub credential, which is settled at once and moves no money; test environments only. */
export async function verifyStub(
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
    ...settledAtOnce(common.createdAt),
  }
  await ctx.recordPayment({ ctx, payment })
  return responseOf(ctx, payment)
}
