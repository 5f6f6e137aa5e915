import {
  AuthenticationError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ValidationError,
} from '../errors.ts'
import type { ChallengeRequested } from './contract.ts'
import { offersFor } from './offers.ts'
import { challengeResponse, type OwnResponse, problemResponse, type Refusal } from './responses.ts'
import type { Route, Seller } from './seller.ts'

/** The payment terms of one request: everything on which its challenge and its payment must agree. */
export interface PaymentContext {
  readonly seller: Seller
  readonly route: Route
  readonly price: string
  readonly resource: string
  readonly method: string
  readonly ip: string | undefined
  /** The RFC 9530 digest of the request body, if the route binds it. */
  readonly digest: string | undefined
  /** The caller's `Accept-Payment`. */
  readonly acceptPayment: string | undefined
}

/**
 * Returns the 402 with a fresh challenge in each protocol that the route accepts. `refusal` says why the previous
 * payment was refused. A price of zero is offered in MPP only.
 */
export async function requestPayment(context: PaymentContext, refusal?: Refusal): Promise<OwnResponse> {
  const { seller, route, ip, acceptPayment } = context
  try {
    const challenge = await seller.takeChallenge(challengeRequestOf(context))
    const x402 = route.protocols.includes('x402') ? challenge.x402 : null
    const x402V1 = x402 === null ? null : challenge.x402V1
    const mpp = route.protocols.includes('mpp') ? offersFor(challenge.mpp, acceptPayment) : []
    if (x402 === null && mpp.length === 0) throw new Error('The challenge offers no payment that this route accepts.')
    return challengeResponse({ x402, x402V1, mpp }, refusal)
  } catch (error) {
    if (ip !== undefined && error instanceof RateLimitError)
      return problemResponse('rate-limit-exceeded', error.retryAfterSeconds ?? 60)
    return challengeFailed(seller, error)
  }
}

/** Reports that no challenge could be fetched, and returns the response to the caller. */
export function challengeFailed(seller: Seller, error: unknown): OwnResponse {
  seller.onFault({ stage: 'challenge', error })
  return isMisconfigured(error) ? problemResponse('payments-misconfigured') : problemResponse('payments-unavailable', 5)
}

const faultsOfConfiguration = [AuthenticationError, PermissionDeniedError, ValidationError, NotFoundError]

/**
 * Whether Purser refused the provider's configuration, such as the key, a wallet or a price. Retrying does not help.
 */
export function isMisconfigured(error: unknown): boolean {
  return faultsOfConfiguration.some((Kind) => error instanceof Kind)
}

/**
 * The challenge request of these payment terms. It names no method, so that the challenge promises no price: another route, version or host of the
 * seller may sell the same URL at another one.
 */
export function challengeRequestOf({ seller, route, resource, price, digest, ip }: PaymentContext): ChallengeRequested {
  return {
    ...seller.payee,
    resource,
    price,
    ...(!route.protocols.includes('x402') && { acceptX402: false }),
    ...(seller.signOffers && { signOffers: true }),
    ...(route.acceptSessions && { intent: 'session' as const }),
    ...(!route.protocols.includes('mpp') && { acceptMPP: false }),
    ...(route.credentialHeader !== 'Authorization' && { credentialHeader: route.credentialHeader }),
    ...(route.description !== undefined && { description: route.description }),
    ...(route.mimeType !== undefined && { mimeType: route.mimeType }),
    ...(digest !== undefined && { digest }),
    ...(ip !== undefined && { ip }),
  }
}
