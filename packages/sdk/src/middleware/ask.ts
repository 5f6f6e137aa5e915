import { AuthenticationError, RateLimitError, ValidationError } from '../errors.ts'
import { challengeAnswer, type OwnAnswer, problemAnswer, type Refusal } from './answers.ts'
import type { ChallengeAsked } from './contract.ts'
import { offersFor } from './offers.ts'
import type { Route, Till } from './options.ts'

/** One request for a paid route, with all that its challenge and its payment must agree on. */
export interface Sale {
  readonly till: Till
  readonly route: Route
  readonly price: string
  readonly resource: string
  readonly method: string
  /** Whether every request to the route costs the same, so that a challenge may promise its price. */
  readonly hasFixedPrice: boolean
  readonly ip: string | undefined
  /** RFC 9530, of the request's body where the route binds it. */
  readonly digest: string | undefined
  /** The caller's `Accept-Payment`. */
  readonly acceptPayment: string | undefined
}

/**
 * The 402 with a challenge of its own for this caller, in each protocol that the route takes; `refusal` says why the
 * payment that came was not good. A price of zero is offered by MPP alone.
 */
export async function askToPay(sale: Sale, refusal?: Refusal): Promise<OwnAnswer> {
  const { till, route, ip, acceptPayment } = sale
  try {
    const challenge = await till.takeChallenge(requestOf(sale))
    const x402 = route.protocols.includes('x402') ? challenge.x402 : null
    const x402V1 = x402 === null ? null : challenge.x402V1
    const mpp = route.protocols.includes('mpp') ? offersFor(challenge.mpp, acceptPayment) : []
    if (x402 === null && mpp.length === 0) throw new Error('The challenge offers no payment that this route takes.')
    return challengeAnswer({ x402, x402V1, mpp }, refusal)
  } catch (error) {
    if (ip !== undefined && error instanceof RateLimitError)
      return problemAnswer('rate-limit-exceeded', error.retryAfterSeconds ?? 60)
    till.onFault({ stage: 'challenge', error })
    return isMisconfigured(error) ? problemAnswer('payments-misconfigured') : problemAnswer('payments-unavailable', 5)
  }
}

/** Whether Purser refused what the provider has set, such as the key, a wallet or a price: waiting does not help. */
export function isMisconfigured(error: unknown): boolean {
  return error instanceof AuthenticationError || error instanceof ValidationError
}

function requestOf({ till, route, resource, price, method, hasFixedPrice, digest, ip }: Sale): ChallengeAsked {
  return {
    ...till.payee,
    resource,
    price,
    ...(hasFixedPrice && { method }),
    ...(!route.protocols.includes('x402') && { acceptX402: false }),
    ...(till.signOffers && { signOffers: true }),
    ...(route.acceptSessions && { intent: 'session' as const }),
    ...(!route.protocols.includes('mpp') && { acceptMPP: false }),
    ...(route.credentialHeader !== 'Authorization' && { credentialHeader: route.credentialHeader }),
    ...(route.description !== undefined && { description: route.description }),
    ...(route.mimeType !== undefined && { mimeType: route.mimeType }),
    ...(digest !== undefined && { digest }),
    ...(ip !== undefined && { ip }),
  }
}
