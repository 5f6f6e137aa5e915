import type { z } from 'zod'
import { isStub } from './credential.ts'
import { verifyStub } from './methods/stub/verify.ts'
import { verifyExact } from './methods/x402-exact/verify.ts'
import { verifyMpp } from './mpp/verify.ts'
import type { Ctx } from './ports.ts'
import type { VerifiedPayment, VerifyRequest } from './schema.ts'
import { selectWallet, walletsOf } from './which-wallet.ts'

/**
 * Verifies a credential and records the payment, once. The cheapest refusals come first; chain queries are batched with
 * those of other requests; the row, its event and the month's count commit together. A used credential is refused with
 * 409 even if it has other faults now, because those may follow from its first use.
 */
export async function verifyPayment(ctx: Ctx, request: VerifyRequest): Promise<z.input<typeof VerifiedPayment>> {
  const wallet = selectWallet(await walletsOf(ctx, request), request)
  if (wallet === undefined) throw new Error('a request names a wallet')
  if (isStub(request.credential)) return verifyStub(ctx, request, wallet)
  return request.protocol === 'mpp' ? verifyMpp(ctx, request, wallet) : verifyExact(ctx, request, wallet)
}
