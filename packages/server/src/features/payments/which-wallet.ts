import { decodeMppJson, decodePayment, networkByX402V1Name, parseMppCredential, sameAddress } from '@purser/protocol'
import { getPayableWallet, type ReceivingWallet } from '../wallets/index.ts'
import { mppMethodNamed } from './methods/index.ts'
import type { Ctx } from './ports.ts'
import type { ChallengeRequest, VerifyRequest } from './schema.ts'

/** Returns the wallets that a request names, the first one first; each must be able to accept a payment. */
export function walletsOf(
  ctx: Ctx,
  { walletId, otherWalletIds = [] }: Pick<ChallengeRequest, 'walletId' | 'otherWalletIds'>,
): Promise<ReceivingWallet[]> {
  return Promise.all([walletId, ...otherWalletIds].map((id) => getPayableWallet(ctx, id)))
}

/**
 * Guesses which of several wallets a credential pays, from unverified values. Verification then checks the credential against the
 * chosen wallet, so a false value is refused there. Returns the first wallet if none matches.
 */
export function selectWallet(wallets: readonly ReceivingWallet[], request: VerifyRequest): ReceivingWallet | undefined {
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
