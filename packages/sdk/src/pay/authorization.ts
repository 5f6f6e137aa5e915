import { type ExactEvmPayload, type Hex, isHex } from '@purser/protocol'
import type { RefusalReason } from './errors.ts'
import type { Price } from './offers.ts'
import type { Payer } from './payer.ts'

/** The longest validity of an authorization in seconds, whatever a seller requests. */
export const authorizationSecondsMax = 3_600

const signatureTextMax = 32_768

const authorizationTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
}

/** Why a price cannot be paid with an EIP-3009 signature, or `undefined` if it can. */
export function whyNotAuthorizable({ token }: Price): RefusalReason | undefined {
  return token.eip3009 && token.eip712 !== null ? undefined : 'token-without-signatures'
}

/**
 * Signs an EIP-3009 authorization of exactly this price to exactly this receiver, valid from now until
 * `validBeforeSeconds`. The EIP-712 domain comes from the token registry, never from the seller.
 */
export async function signAuthorization(
  payer: Payer,
  { network, token, rawAmount, payTo }: Price,
  { nonce, validBeforeSeconds }: { readonly nonce: Hex; readonly validBeforeSeconds: number },
): Promise<ExactEvmPayload> {
  if (token.eip712 === null) throw new RangeError(`${token.symbol} cannot be paid by a signature`)
  const { name, version } = token.eip712
  const common = { from: payer.address, to: payTo, nonce }
  const validBefore = BigInt(validBeforeSeconds)
  const signature = await payer.signer.signTypedData({
    domain: { name, version, chainId: network.chainId, verifyingContract: token.address },
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message: { ...common, value: rawAmount, validAfter: 0n, validBefore },
  })
  const authorization = { value: rawAmount.toString(), validAfter: '0', validBefore: validBefore.toString() }
  return { signature: hexOf(signature), authorization: { ...common, ...authorization } }
}

/**
 * Returns a signer's result if it is hex of a plausible size for a signature or transaction. Throws a `TypeError`
 * otherwise.
 */
export function hexOf(answer: unknown): Hex {
  const isBytes = typeof answer === 'string' && answer.length <= signatureTextMax && answer.length % 2 === 0
  if (isBytes && answer.length > 2 && isHex(answer)) return answer
  throw new TypeError('the signer did not return 0x and hex digits')
}
