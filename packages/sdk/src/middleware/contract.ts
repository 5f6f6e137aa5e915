import type { ChallengeRequest, Verification, VerifyRequest } from '../payments.ts'

/** Names the header in which MPP clients send their credential; `Authorization` when left out. */
export type CredentialHeader = 'Authorization' | 'Payment-Authorization'

/** What the middleware asks Purser for; `digest` (RFC 9530) binds the challenge to one request body. */
export type ChallengeAsked = ChallengeRequest

/** What the middleware asks Purser to verify; `digest` is of the body that came with the payment. */
export type VerifyAsked = VerifyRequest

/** What a verification says about the MPP challenge that was paid; null where the answer does not tell. */
export interface MppFacts {
  readonly challengeId: string | null
  readonly method: string | null
  /** CAIP-2. */
  readonly network: string | null
}

/** Reads the MPP members of a verification, which an older Purser does not send. */
export function mppFactsOf(verification: Partial<Verification>): MppFacts {
  const { challengeId, method, network }: Record<string, unknown> = { ...verification }
  return { challengeId: textOrNull(challengeId), method: textOrNull(method), network: textOrNull(network) }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
