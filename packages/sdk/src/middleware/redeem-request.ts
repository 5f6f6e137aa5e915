import type { RedeemRequest } from '../payments.ts'
import type { Credential } from './credential.ts'
import type { PaymentContext } from './request-payment.ts'

/**
 * The header with which a payer proves control of the account: an ISO 8601 time and the signature of
 * `redemptionMessage` (EIP-191).
 */
const redemptionHeader = 'x-service-redemption'

export interface PayerSignature {
  readonly value: string
  readonly signedAt: string
}

/** The payer's redemption signature in a request, if there is a well-formed one. */
export function payerSignatureOf(header: (name: string) => string | undefined): PayerSignature | undefined {
  const [, signedAt, value] = /^(\S{1,40}) (0x[0-9a-fA-F]{130})$/.exec(header(redemptionHeader) ?? '') ?? []
  if (signedAt === undefined || value === undefined || Number.isNaN(Date.parse(signedAt))) return undefined
  return { signedAt, value }
}

/** The request that redeems the payment of this credential. */
export function redeemRequestOf(
  { resource, method, digest }: PaymentContext,
  { protocol, value }: Credential,
  signature: PayerSignature | undefined,
): RedeemRequest {
  return {
    protocol,
    credential: value,
    resource,
    method,
    ...(digest !== undefined && { digest }),
    ...(signature !== undefined && { signature }),
  }
}
