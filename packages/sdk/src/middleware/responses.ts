import { type MppProblem, mppProblems, mppProblemType } from '@purser/protocol'
import type { X402V1Body } from '../payments.ts'
import { decodeHeader, encodeHeader } from './headers.ts'

/** A complete response by the middleware, sent instead of the handler's. A header with several values is a list. */
export interface OwnResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string | Uint8Array<ArrayBuffer> | null
}

/** The problem records of the middleware, by code. The code is a member of the record. */
const problems = {
  'ambiguous-payment': [400, 'Bad Request', 'Send one payment, in one header.'],
  'malformed-request': [400, 'Bad Request', 'The URL of this request is malformed.'],
  'duplicate-payment': [409, 'Conflict', 'This payment has already been used. Sign a new one for another request.'],
  'payment-identifier-conflict': [409, 'Conflict', 'The payment identifier already belongs to another payment.'],
  'rate-limit-exceeded': [
    429,
    'Too Many Requests',
    'Too many payment challenges were requested. Wait as long as Retry-After says.',
  ],
  'response-too-large': [
    500,
    'Internal Server Error',
    'The response is too large to be sold. If the payment was not settled yet, it will not be.',
  ],
  'delivery-in-progress': [
    409,
    'Conflict',
    'This payment is being settled or served. After the time in Retry-After, send the same request with the same payment again.',
  ],
  'answer-lost': [
    409,
    'Conflict',
    'This payment was charged, and its response can no longer be served. Do not sign another payment: the provider can refund this one.',
  ],
  'too-many-abandoned-requests': [
    429,
    'Too Many Requests',
    'This payer abandoned too many requests. Nothing was charged. Wait as long as Retry-After says.',
  ],
  'payments-misconfigured': [
    500,
    'Internal Server Error',
    'The payment configuration of this server is invalid. Nothing was served and nothing was charged.',
  ],
  'payments-unavailable': [
    503,
    'Service Unavailable',
    'Payments cannot be verified at the moment. Nothing was served and nothing was charged.',
  ],
  'delivery-unavailable': [
    503,
    'Service Unavailable',
    'This payment was used before. Whether it can still be served cannot be checked at the moment. Send the same request again.',
  ],
  'settlement-unavailable': [
    503,
    'Service Unavailable',
    'The outcome of the settlement is unknown: the payment may still settle. Do not sign another one yet.',
  ],
} as const satisfies Record<string, readonly [OwnResponse['status'], string, string]>

export type ProblemCode = keyof typeof problems

const problemHeaders = { 'Content-Type': 'application/problem+json', 'Cache-Control': 'no-store' }

/** A response with a problem record (RFC 9457), without details of the paid route. */
export function problemResponse(code: ProblemCode, retryAfterSeconds?: number): OwnResponse {
  const [status, title, detail] = problems[code]
  const waiting = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(Math.ceil(retryAfterSeconds)) }
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code })
  return { status, headers: { ...problemHeaders, ...waiting }, body }
}

/**
 * The offers of a 402: x402 version 2; version 1 if that version has a name for the network; one `WWW-Authenticate`
 * value per MPP offer.
 */
export interface Offers {
  readonly x402: string | null
  readonly x402V1: X402V1Body | null
  readonly mpp: readonly string[]
}

/** The reason why a payment was refused, as a reason code of its protocol. */
export interface Refusal {
  readonly protocol: 'x402' | 'mpp'
  readonly reason: string
  /** Purser's explanation for the payer. */
  readonly message?: string | undefined
  /** The payer has already sent money, so the response must not request another payment. */
  readonly hasMoved?: boolean | undefined
}

/**
 * The 402 response that requests a payment in every protocol: a header for x402 version 2, the body for version 1, a
 * header per MPP offer, and a problem record (RFC 9457) in the same body for other clients.
 */
export function challengeResponse(offers: Offers, refusal?: Refusal): OwnResponse {
  const { x402, x402V1, mpp } = offers
  const x402Error = refusal?.protocol === 'x402' ? refusal.reason : undefined
  const headers: Record<string, string | readonly string[]> = {
    'Content-Type': x402 === null ? 'application/problem+json' : 'application/json',
    'Cache-Control': 'no-store',
  }
  if (x402 !== null) headers['PAYMENT-REQUIRED'] = x402Error === undefined ? x402 : withError(x402, x402Error)
  if (mpp.length > 0) headers['WWW-Authenticate'] = mpp
  if (refusal === undefined) return { status: 402, headers, body: unpaidBody(offers) }
  const body = {
    // If version 1 has no name for the network, only version 2 is offered; its clients read the header, not the body.
    ...x402V1,
    ...(x402Error !== undefined && { error: x402Error }),
    ...(mpp.length > 0 && mppProblem(refusal)),
  }
  return { status: 402, headers, body: JSON.stringify(body) }
}

const unpaidBodies = new WeakMap<X402V1Body, string>()

/**
 * The body of a first 402. All challenges of a batch share it, so it is serialized once. It stays text, because Node
 * sends the headers and a text body in one buffer, but bytes in a second one.
 */
function unpaidBody({ x402V1, mpp }: Offers): string {
  const known = x402V1 === null ? undefined : unpaidBodies.get(x402V1)
  if (known !== undefined) return known
  const body = JSON.stringify({ ...x402V1, ...(mpp.length > 0 && unpaid) })
  if (x402V1 !== null) unpaidBodies.set(x402V1, body)
  return body
}

function withError(required: string, reason: string): string {
  const decoded = decodeHeader(required)
  return decoded === undefined ? required : encodeHeader({ ...decoded, error: reason })
}

/**
 * The response for a refusal without a new challenge: if another payment of this kind cannot help, such as
 * `method-unsupported`, or if money was already sent. The official client pays every challenge it gets, up to three
 * times.
 */
export function finalRefusal(refusal: Refusal): OwnResponse | undefined {
  const problem = mppProblem(refusal)
  if (refusal.protocol !== 'mpp' || (problem.status === 402 && refusal.hasMoved !== true)) return undefined
  return { status: problem.status, headers: problemHeaders, body: JSON.stringify(problem) }
}

const unpaid = problemOf('payment-required', 'This resource must be paid for.')

function mppProblem(refusal: Refusal | undefined): ReturnType<typeof problemOf> {
  if (refusal === undefined) return unpaid
  const code = isMppProblem(refusal.reason) ? refusal.reason : 'verification-failed'
  const detail = `The payment was refused: ${refusal.reason}.`
  return problemOf(code, refusal.message === undefined ? detail : `${detail} ${refusal.message}`)
}

function problemOf(code: MppProblem, detail: string) {
  const { status, title } = mppProblems[code]
  return { type: mppProblemType(code), title, status, detail }
}

function isMppProblem(reason: string): reason is MppProblem {
  return Object.hasOwn(mppProblems, reason)
}
