import { type MppProblem, mppProblems, mppProblemType } from '@purser/protocol'
import type { X402V1Body } from '../payments.ts'
import { decodeHeader, encodeHeader } from './headers.ts'

/** A complete answer of the middleware's own, in place of the handler's. Several values of a header stand in a list. */
export interface OwnAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string | Uint8Array<ArrayBuffer> | null
}

/** Why the middleware answers a problem record; the code is a member of the record. */
const problems = {
  'ambiguous-payment': [400, 'Bad Request', 'Send one payment, in one header.'],
  'malformed-request': [400, 'Bad Request', 'The address of this request cannot be read.'],
  'duplicate-payment': [409, 'Conflict', 'This payment was used already. Sign a new one for another request.'],
  'payment-identifier-conflict': [409, 'Conflict', 'The payment identifier was given to another payment already.'],
  'rate-limit-exceeded': [
    429,
    'Too Many Requests',
    'Too many requests to pay were asked for. Wait as Retry-After says.',
  ],
  'response-too-large': [
    500,
    'Internal Server Error',
    'The answer is too large to be sold. A payment that was not settled yet stays unsettled.',
  ],
  'delivery-in-progress': [
    409,
    'Conflict',
    'This payment is being settled or served. Send the same request with the same payment again, as Retry-After says.',
  ],
  'answer-lost': [
    409,
    'Conflict',
    'This payment was charged, and its answer can no longer be served. Do not sign another one: the provider can refund it.',
  ],
  'too-many-abandoned-requests': [
    429,
    'Too Many Requests',
    'Too many requests of this payer were left before they were answered. Nothing was charged. Wait as Retry-After says.',
  ],
  'payments-misconfigured': [
    500,
    'Internal Server Error',
    'This server cannot take payments because of its own configuration. Nothing was sent and nothing was charged.',
  ],
  'payments-unavailable': [
    503,
    'Service Unavailable',
    'Payments cannot be checked at the moment. Nothing was sent and nothing was charged.',
  ],
  'delivery-unavailable': [
    503,
    'Service Unavailable',
    'This payment was used. Whether it may still be served cannot be checked at the moment. Send the same request again.',
  ],
  'settlement-unavailable': [
    503,
    'Service Unavailable',
    'Whether the payment was settled is not known yet; it may still be. Do not sign another one at once.',
  ],
} as const satisfies Record<string, readonly [OwnAnswer['status'], string, string]>

export type ProblemCode = keyof typeof problems

const problemHeaders = { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' }

/** A problem record (RFC 9457) that says nothing about what lies behind the paid route. */
export function problemAnswer(code: ProblemCode, retryAfterSeconds?: number): OwnAnswer {
  const [status, title, detail] = problems[code]
  const waiting = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(Math.ceil(retryAfterSeconds)) }
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code })
  return { status, headers: { ...problemHeaders, ...waiting }, body }
}

/** What one 402 offers: x402 in version 2 and, where the network has a name in it, 1; one `WWW-Authenticate` for each MPP offer. */
export interface Offers {
  readonly x402: string | null
  readonly x402V1: X402V1Body | null
  readonly mpp: readonly string[]
}

/** Why the payment that came was refused, in the words of its protocol. */
export interface Refusal {
  readonly protocol: 'x402' | 'mpp'
  readonly reason: string
  /** What Purser says about it in a sentence, for the payer. */
  readonly message?: string | undefined
  /** The payer has sent money before it was looked at, so he must not be asked for more by the same answer. */
  readonly hasMoved?: boolean | undefined
}

/**
 * The 402 that asks for a payment in every protocol at once: a header for version 2 of x402, the body for version 1, a
 * header for each MPP offer, and a problem record (RFC 9457) beside version 1's members for whoever reads that.
 */
export function challengeAnswer(offers: Offers, refusal?: Refusal): OwnAnswer {
  const { x402, x402V1, mpp } = offers
  const x402Error = refusal?.protocol === 'x402' ? refusal.reason : undefined
  const headers: Record<string, string | readonly string[]> = {
    'Content-Type': x402 === null ? 'application/problem+json' : 'application/json',
    'Cache-Control': 'no-store',
  }
  if (x402 !== null) headers['PAYMENT-REQUIRED'] = x402Error === undefined ? x402 : withError(x402, x402Error)
  if (mpp.length > 0) headers['WWW-Authenticate'] = mpp
  if (refusal === undefined) return { status: 402, headers, body: unpaidBody(x402V1, mpp.length > 0) }
  const body = {
    // A network without a name in version 1 is paid with version 2 alone; its clients read the header and not the body.
    ...x402V1,
    ...(x402Error !== undefined && { error: x402Error }),
    ...(mpp.length > 0 && mppProblem(refusal)),
  }
  return { status: 402, headers, body: JSON.stringify(body) }
}

const unpaidBodies = new WeakMap<X402V1Body, Uint8Array<ArrayBuffer>>()

/**
 * The body of a 402 that nobody paid for yet: the same for all challenges of a batch, so it is written once, and as bytes:
 * Node sends a text body together with the headers and encodes all of it anew.
 */
function unpaidBody(x402V1: X402V1Body | null, hasMpp: boolean): Uint8Array<ArrayBuffer> {
  const known = x402V1 === null ? undefined : unpaidBodies.get(x402V1)
  if (known !== undefined) return known
  const body = new TextEncoder().encode(JSON.stringify({ ...x402V1, ...(hasMpp && unpaid) }))
  if (x402V1 !== null) unpaidBodies.set(x402V1, body)
  return body
}

function withError(required: string, reason: string): string {
  const decoded = decodeHeader(required)
  return decoded === undefined ? required : encodeHeader({ ...decoded, error: reason })
}

/**
 * A refusal with which no challenge comes: one that no other payment of this kind can cure, such as `method-unsupported`,
 * and one of money that was sent already, since the official client pays each challenge that it is shown, up to three times.
 */
export function finalRefusal(refusal: Refusal): OwnAnswer | undefined {
  const problem = mppProblem(refusal)
  if (refusal.protocol !== 'mpp' || (problem.status === 402 && refusal.hasMoved !== true)) return undefined
  return { status: problem.status, headers: problemHeaders, body: JSON.stringify(problem) }
}

const unpaid = problemOf('payment-required', 'This resource must be paid for.')

function mppProblem(refusal: Refusal | undefined): ReturnType<typeof problemOf> {
  if (refusal === undefined) return unpaid
  const code = isMppProblem(refusal.reason) ? refusal.reason : 'verification-failed'
  const said = `The payment was refused: ${refusal.reason}.`
  return problemOf(code, refusal.message === undefined ? said : `${said} ${refusal.message}`)
}

function problemOf(code: MppProblem, detail: string) {
  const { status, title } = mppProblems[code]
  return { type: mppProblemType(code), title, status, detail }
}

function isMppProblem(reason: string): reason is MppProblem {
  return Object.hasOwn(mppProblems, reason)
}
