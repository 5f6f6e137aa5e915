import { decodeMppJson, decodePayment, networkByX402V1Name, parseMppCredential, sameAddress } from '@purser/protocol'
import type { z } from 'zod'
import { Problem } from '../../platform/errors.ts'
import { getPayableWallet, type ReceivingWallet } from '../wallets/index.ts'
import { isStub } from './credential.ts'
import { mppMethodNamed } from './methods/index.ts'
import { verifyStub } from './methods/stub/verify.ts'
import { verifyExact } from './methods/x402-exact/verify.ts'
import { verifyMpp } from './mpp/verify.ts'
import type { Ctx } from './ports.ts'
import type { ChallengeRequest, VerifiedPayment, VerifyRequest } from './schema.ts'

/**
 * Verifies a credential and records the payment, once. The cheapest refusals come first; chain queries are batched with
 * those of other requests; the row, its event and the month's count commit together. A used credential is refused with
 * 409 even if it has other faults now, because those may follow from its first use.
 */
export async function verifyPayment(ctx: Ctx, request: VerifyRequest): Promise<z.input<typeof VerifiedPayment>> {
  const wallet = selectWallet(await walletsOf(ctx, request), request)
  if (wallet === undefined) throw new Error('a request names a wallet')
  if (isStub(request.credential)) return verifyStub(ctx, request, wallet)
  try {
    return await (request.protocol === 'mpp' ? verifyMpp(ctx, request, wallet) : verifyExact(ctx, request, wallet))
  } catch (error) {
    if (error instanceof Problem && error.code === 'payment-verification-failed')
      ctx.attemptCounts.add(ctx.tenant, { refused: 1 })
    throw error
  }
}

/** Returns the wallets that a request names, the first one first; each must be able to accept a payment. */
export function walletsOf(
  ctx: Pick<Ctx, 'receivingWallets' | 'tenant'>,
  { walletId, otherWalletIds = [] }: Pick<ChallengeRequest, 'walletId' | 'otherWalletIds'>,
): Promise<ReceivingWallet[]> {
  return Promise.all([walletId, ...otherWalletIds].map((id) => getPayableWallet(ctx, id)))
}

/**
 * Guesses which of several wallets a credential pays, from unverified values. Verification then checks the credential against the
 * chosen wallet, so a false value is refused there. Returns the first wallet if none matches.
 */
function selectWallet(wallets: readonly ReceivingWallet[], request: VerifyRequest): ReceivingWallet | undefined {
  const payee = wallets.length === 1 ? undefined : payeeOf(request)
  if (payee === undefined) return wallets[0]
  const onNetwork = wallets.filter(({ network }) => network.caip2 === payee.caip2)
  const atAddress = (wallet: ReceivingWallet): boolean => sameAddress(wallet.address, payee.address)
  return onNetwork.find(atAddress) ?? wallets.find(atAddress) ?? onNetwork[0] ?? wallets[0]
}

interface Payee {
  readonly caip2: string
  readonly address: string
}

function payeeOf({ protocol, credential }: VerifyRequest): Payee | undefined {
  return protocol === 'mpp' ? payeeOfMpp(credential) : payeeOfX402(credential)
}

function payeeOfMpp(credential: string): Payee | undefined {
  const parsed = parseMppCredential(credential)
  if (!parsed.ok) return undefined
  const { method, request } = parsed.value.challenge
  const charge = mppMethodNamed(method)?.parse(decodeMppJson(request) ?? {})
  return charge && { caip2: `eip155:${charge.chainId}`, address: charge.recipient }
}

function payeeOfX402(credential: string): Payee | undefined {
  const decoded = decodePayment(credential)
  if (!decoded.ok) return undefined
  const payment = decoded.value
  if (payment.x402Version === 2) return { caip2: payment.accepted.network, address: payment.accepted.payTo }
  const network = networkByX402V1Name(payment.network)
  return network && { caip2: network.caip2, address: payment.payload.authorization.to }
}
