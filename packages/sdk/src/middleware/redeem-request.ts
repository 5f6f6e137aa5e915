import type { RedeemRequest } from '../payments.ts'
import type { Credential } from './credential.ts'
import type { PayerSignature } from './payer-signature.ts'
import type { PaymentContext } from './request-payment.ts'

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
