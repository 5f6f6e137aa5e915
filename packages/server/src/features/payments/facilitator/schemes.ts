import { permit2 } from '../permit2/scheme.ts'
import { exactEip3009 } from './exact-eip3009.ts'
import { objectOf } from './paid-resource.ts'
import type { FacilitatorBody } from './schema.ts'
import type { Scheme } from './scheme.ts'

/**
 * Selects the scheme: `upto` by the server's requirements, and `exact` by what was signed, as the reference implementation does.
 * Anything else is read as `exact` with EIP-3009, which reports the fault.
 */
export function schemeOf({ paymentPayload, paymentRequirements }: FacilitatorBody): Scheme {
  if (paymentRequirements.scheme === 'upto') return permit2
  const isPermit2 = paymentPayload.x402Version === 2 && 'permit2Authorization' in objectOf(paymentPayload.payload)
  return isPermit2 ? permit2 : exactEip3009
}
