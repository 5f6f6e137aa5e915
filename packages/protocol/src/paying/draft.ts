import { encodeJsonBase64 } from '../base64.ts'
import type { Hex } from '../bytes.ts'
import { formatMppCredential } from '../mpp/credential.ts'
import type { WireAuthorization } from '../x402/messages.ts'
import type { AuthorizationDraft, CredentialDraft, DraftTerms, OfferRefusalReason, Price } from './offer.ts'

/** The maximum validity of an authorization, in seconds, whatever a seller requests. */
export const authorizationSecondsMax = 3_600

/** The header field that pays. */
export interface PaymentHeader {
  readonly header: string
  readonly value: string
}

/**
 * Completes a credential with the signature of its authorization.
 *
 * @example
 * const authorization = { from: '0x857b06519E91e3A54538791bDbb0E22373e36b66', to: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', value: '10000', validAfter: '0', validBefore: '60', nonce: '0x' + '11'.repeat(32) }
 * const draft = { kind: 'x402', header: 'PAYMENT-SIGNATURE', authorization, message: { x402Version: 2 } }
 * signedHeader(draft, '0x' + '22'.repeat(65)).header // 'PAYMENT-SIGNATURE'
 */
export function signedHeader(draft: CredentialDraft, signature: Hex): PaymentHeader {
  const { header, authorization } = draft
  if (draft.kind === 'x402')
    return { header, value: encodeJsonBase64({ ...draft.message, payload: { signature, authorization } }) }
  const payload = { type: 'authorization', ...authorization, signature }
  return { header, value: formatMppCredential({ ...draft.credential, payload }) }
}

/** Returns why a price cannot be paid with an EIP-3009 signature, or `undefined` if it can. */
export function whyNotAuthorizable({ token }: Price): OfferRefusalReason | undefined {
  return token.eip3009 && token.eip712 !== null ? undefined : 'token-without-signatures'
}

/**
 * Returns an authorization of exactly this price to exactly this receiver, valid from now until `validBeforeSeconds`.
 * The EIP-712 domain comes from the token registry, never from the seller.
 */
export function authorizationDraft(
  { network, token, rawAmount, payTo }: Price,
  { from, nonce }: Pick<DraftTerms, 'from' | 'nonce'>,
  validBeforeSeconds: number,
): Omit<AuthorizationDraft, 'credential'> & { readonly wire: WireAuthorization } {
  if (token.eip712 === null)
    throw new RangeError(`${token.symbol} does not support EIP-3009, so a signature cannot pay it`)
  const { name, version } = token.eip712
  const validBefore = BigInt(validBeforeSeconds)
  return {
    domain: { name, version, chainId: network.chainId, verifyingContract: token.address },
    authorization: { from, to: payTo, value: rawAmount, validAfter: 0n, validBefore, nonce },
    wire: { from, to: payTo, value: rawAmount.toString(), validAfter: '0', validBefore: validBefore.toString(), nonce },
  }
}
