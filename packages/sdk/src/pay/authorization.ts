import { type AuthorizationDraft, type Hex, isHex, signedHeader } from '@purser/protocol'
import type { Payer } from './payer.ts'
import type { Credential } from './payment.ts'

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

/** Signs an EIP-3009 authorization, and returns the credential that it completes. */
export async function signDraft(
  { signer }: Payer,
  { domain, authorization, credential }: AuthorizationDraft,
): Promise<Credential> {
  const signature = await signer.signTypedData({
    domain,
    types: authorizationTypes,
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  })
  return {
    ...signedHeader(credential, hexOf(signature)),
    validBeforeSeconds: Number(authorization.validBefore),
  }
}

/**
 * Returns a signer's result if it is hex of a plausible size for a signature or transaction. Throws a `TypeError`
 * otherwise.
 */
export function hexOf(response: unknown): Hex {
  const isBytes = typeof response === 'string' && response.length <= signatureTextMax && response.length % 2 === 0
  if (isBytes && response.length > 2 && isHex(response)) return response
  throw new TypeError('the signer did not return 0x and hex digits')
}
