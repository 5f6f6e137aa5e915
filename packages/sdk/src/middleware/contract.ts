import type { ChallengeRequest, Verification, VerifyRequest } from '../payments.ts'

/** The header in which MPP clients send their credential. Default: `Authorization`. */
export type CredentialHeader = 'Authorization' | 'Payment-Authorization'

/** A challenge request of the middleware. `digest` (RFC 9530) binds the challenge to one request body. */
export type ChallengeRequested = ChallengeRequest

/** A verification request of the middleware. `digest` is that of the body sent with the payment. */
export type VerifyRequested = VerifyRequest

/** The MPP challenge facts of a verification. Null if the response has none. */
export interface MppFacts {
  readonly challengeId: string | null
  readonly method: string | null
  /** CAIP-2. */
  readonly network: string | null
}

/** Reads the MPP members of a verification. Older versions of Purser do not send them. */
export function mppFactsOf(verification: Partial<Verification>): MppFacts {
  const { challengeId, method, network }: Record<string, unknown> = { ...verification }
  return { challengeId: textOrNull(challengeId), method: textOrNull(method), network: textOrNull(network) }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
