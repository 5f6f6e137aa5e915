import type { X402V1Body } from '../payments.ts'
import type { Credential } from './credential.ts'
import { decodeHeader, encodeHeader } from './headers.ts'

/** A complete answer of the middleware's own, in place of the handler's. */
export interface OwnAnswer {
  readonly status: 400 | 402 | 409 | 429 | 500 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Why the middleware answers a problem record; the code is a member of the record. */
const problems = {
  'ambiguous-payment': [400, 'Bad Request', 'Send PAYMENT-SIGNATURE or X-PAYMENT, not both.'],
  'malformed-request': [400, 'Bad Request', 'The address of this request cannot be read.'],
  'duplicate-payment': [409, 'Conflict', 'This payment was used already. Sign a new one for another request.'],
  'rate-limit-exceeded': [
    429,
    'Too Many Requests',
    'Too many requests to pay were asked for. Wait as Retry-After says.',
  ],
  'response-too-large': [
    500,
    'Internal Server Error',
    'The answer is too large to be sold. The payment was not settled.',
  ],
  'payments-unavailable': [
    503,
    'Service Unavailable',
    'Payments cannot be checked at the moment. Nothing was charged.',
  ],
  'settlement-unavailable': [
    503,
    'Service Unavailable',
    'Whether the payment was settled is not known yet; it may still be. Do not sign another one at once.',
  ],
} as const satisfies Record<string, readonly [OwnAnswer['status'], string, string]>

/** A problem record (RFC 9457) that says nothing about what lies behind the paid route. */
export function problemAnswer(code: keyof typeof problems, retryAfterSeconds?: number): OwnAnswer {
  const [status, title, detail] = problems[code]
  const headers: Record<string, string> = { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' }
  if (retryAfterSeconds !== undefined) headers['Retry-After'] = String(Math.ceil(retryAfterSeconds))
  return { status, headers, body: JSON.stringify({ type: 'about:blank', title, status, detail, code }) }
}

/** A challenge that x402 can be asked with: version 2, and version 1 where it has a name for the network. */
export interface X402Challenge {
  readonly x402: string
  readonly x402V1: X402V1Body | null
}

/**
 * The 402 that asks for a payment: the header for version 2 of x402, the body for version 1. `reason` says in both why
 * the payment that came was refused.
 */
export function challengeAnswer(challenge: X402Challenge, reason?: string): OwnAnswer {
  const required = reason === undefined ? challenge.x402 : withError(challenge.x402, reason)
  // A network without a name in version 1 is paid with version 2 alone; its clients read the header and not the body.
  const offered = challenge.x402V1 ?? {}
  const body = reason === undefined ? offered : { ...offered, error: reason }
  return {
    status: 402,
    headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', 'PAYMENT-REQUIRED': required },
    body: JSON.stringify(body),
  }
}

function withError(required: string, reason: string): string {
  const decoded = decodeHeader(required)
  return decoded === undefined ? required : encodeHeader({ ...decoded, error: reason })
}

/** The 402 for a payment that was valid and could not be settled: the goods stay here, the payer keeps the money. */
export function unsettledAnswer(credential: Credential, payer: string | null, reason: string): OwnAnswer {
  const { network, responseHeader } = credential
  const failure = { success: false, errorReason: reason, transaction: '', network, ...named(payer) }
  return {
    status: 402,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      [responseHeader]: encodeHeader(failure),
    },
    body: JSON.stringify({ error: reason }),
  }
}

/** The value of `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE` for a payment that went through, or is on its way. */
export function receiptOf(
  credential: Credential,
  payer: string | null,
  txHash: string | null,
  pending: boolean,
): string {
  const receipt = { success: true, transaction: txHash ?? '', network: credential.network, ...named(payer) }
  return encodeHeader(pending ? { ...receipt, extra: { settlement: 'pending' } } : receipt)
}

/** Optional members of the protocol are left out, not null. */
function named(payer: string | null): { payer?: string } {
  return payer === null ? {} : { payer }
}
