import type { ChallengeRequest, VerifyRequest } from '../payments.ts'

/** The header in which MPP clients send their credential. Default: `Authorization`. */
export type CredentialHeader = 'Authorization' | 'Payment-Authorization'

/** A challenge request of the middleware. `digest` (RFC 9530) binds the challenge to one request body. */
export type ChallengeRequested = ChallengeRequest

/** A verification request of the middleware. `digest` is that of the body sent with the payment. */
export type VerifyRequested = VerifyRequest
