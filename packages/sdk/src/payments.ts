import { UnavailableError } from './errors.ts'
import { type Listing, listing, type PageQuery } from './paging.ts'
import { isRecord } from './problem.ts'
import type { Answer, CallOptions, Send } from './transport.ts'

export type Protocol = 'x402' | 'mpp'

export interface ChallengeRequest {
  /** Who is paid: a `byw_`, `mwt_` or `cad_` id. */
  readonly walletId: string
  /** URL of the paid route. */
  readonly resource?: string
  readonly hostname?: string
  /** Decimal USD, such as `0.01`. */
  readonly price: string
  readonly description?: string
  readonly mimeType?: string
  readonly intent?: 'charge' | 'session'
  readonly acceptX402?: boolean
  readonly acceptMPP?: boolean
  /** The caller's caller, whose challenges are limited. */
  readonly ip?: string
  /** RFC 9530 digest of the request's body. */
  readonly digest?: string
}

/** The JSON body by which version 1 of x402 asks for a payment. */
export interface X402V1Body {
  readonly x402Version: number
  readonly accepts: readonly unknown[]
  readonly [member: string]: unknown
}

/** One request to pay, for one payer: each has randomness of its own, so it must be shown once only. */
export interface Challenge {
  /** Value of the `PAYMENT-REQUIRED` header. */
  readonly x402: string
  readonly x402V1: X402V1Body
  /** Value of the `WWW-Authenticate` header. */
  readonly mpp: string | null
  readonly expiresAt: string
}

export interface VerifyRequest {
  readonly protocol: Protocol
  /** The header's raw value. */
  readonly credential: string
  readonly price: string
  readonly currency: 'USD'
  readonly walletId: string
  readonly resource: string
  readonly method: string
  readonly description?: string
  /** CAIP-2. */
  readonly network?: string
}

export interface Verification {
  readonly valid: true
  readonly paymentId: string
  readonly protocol: Protocol
  /** Decimal amount of the coin. */
  readonly amount: string
  readonly coin: string
  readonly payer: string
  readonly txHash: string | null
  readonly settledAt: string | null
  /** Whether `settle` must still be called for the money to move. */
  readonly settlementPending: boolean
  /** A secret between Purser and whoever verified: it lets the payment be settled. */
  readonly settlementToken: string | null
}

/** What a paid handler may know of the payment: everything but what lets it be settled. */
export type VerifiedPayment = Omit<Verification, 'valid' | 'settlementToken'>

export interface SettleRequest {
  readonly paymentId: string
  readonly settlementToken: string
}

/** What became of a payment's money so far. `settling`: not known yet; with the hash once it was broadcast. */
export type Settlement =
  | { readonly status: 'settled'; readonly txHash: string | null; readonly settledAt: string }
  | { readonly status: 'settling'; readonly txHash: string | null }

export type PaymentStatus = 'verified' | 'settling' | 'settled' | 'settlement_failed' | 'voided'

export interface PaymentLog {
  readonly id: string
  readonly paymentId: string
  readonly route: string
  readonly method: string
  readonly amount: string
  readonly token: string
  readonly chain: string
  readonly protocol: Protocol
  readonly txHash: string | null
  readonly payer: string
  readonly walletId: string
  readonly vaultId: string | null
  readonly sessionId: string | null
  readonly apiKeyId: string | null
  readonly status: PaymentStatus
  readonly createdAt: string
}

export interface PaymentLogQuery extends PageQuery {
  readonly route?: string
  readonly protocol?: Protocol
  readonly walletId?: string
  readonly apiKeyId?: string
  /** ISO 8601. */
  readonly from?: string
  readonly to?: string
}

export interface RouteSummary {
  readonly route: string
  readonly totalPayments: number
  readonly totalRevenue: string
  readonly token: string
}

/** The operations on payments. The answers that money hangs on are checked member by member before they are believed. */
export function paymentsOf(send: Send) {
  const post = (verb: string, body: unknown, options?: CallOptions) =>
    send('POST', `/payments/${verb}`, { ...options, body })
  return {
    challenge: async (body: ChallengeRequest, options?: CallOptions): Promise<Challenge> =>
      believe(await post('challenge', body, options), readChallenge),
    /** Several challenges for one route at once (at most 100), each to be shown to one payer. */
    challenges: async (body: ChallengeRequest & { readonly count: number }, options?: CallOptions) =>
      believe(await post('challenge', body, options), readChallenges),
    verify: async (body: VerifyRequest, options?: CallOptions): Promise<Verification> =>
      believe(await post('verify', body, options), readVerification),
    settle: async (body: SettleRequest, options?: CallOptions): Promise<Settlement> =>
      believe(await post('settle', body, options), readSettlement),
    get: async (paymentId: string, options?: CallOptions): Promise<Record<string, unknown>> =>
      believe(await send('GET', `/payments/${encodeURIComponent(paymentId)}`, options), readRecord),
    logs: {
      list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
        listing(send, '/payments/logs', query, options),
      summary: (query?: PaymentLogQuery, options?: CallOptions): Listing<RouteSummary> =>
        listing(send, '/payments/logs/summary', query, options),
    },
  }
}

/** A 2xx whose body is not what was asked for is nobody's consent: it counts as no answer. */
function believe<T>(answer: Answer, read: (body: unknown) => T | undefined): T {
  const value = read(answer.body)
  if (value !== undefined) return value
  const requestId = answer.headers.get('x-request-id') ?? undefined
  const facts = { status: answer.status, code: 'unreadable-answer', requestId }
  throw new UnavailableError('The answer is not of the form that this operation gives.', facts)
}

function readRecord(body: unknown): Record<string, unknown> | undefined {
  return isRecord(body) ? body : undefined
}

function readChallenge(body: unknown): Challenge | undefined {
  if (!isRecord(body)) return undefined
  const { x402, x402V1, mpp, expiresAt } = body
  if (typeof x402 !== 'string' || typeof expiresAt !== 'string') return undefined
  if (!isRecord(x402V1) || !Array.isArray(x402V1.accepts)) return undefined
  return { x402, x402V1: { ...x402V1, x402Version: 1, accepts: x402V1.accepts }, mpp: textOrNull(mpp), expiresAt }
}

function readChallenges(body: unknown): Challenge[] | undefined {
  if (!Array.isArray(body)) return undefined
  const read = body.map(readChallenge).filter((challenge) => challenge !== undefined)
  return read.length === body.length && read.length > 0 ? read : undefined
}

function readVerification(body: unknown): Verification | undefined {
  if (!isRecord(body)) return undefined
  const { valid, paymentId, protocol, amount, coin, payer, settlementPending } = body
  if (valid !== true || typeof paymentId !== 'string' || (protocol !== 'x402' && protocol !== 'mpp')) return undefined
  if (typeof amount !== 'string' || typeof coin !== 'string' || typeof payer !== 'string') return undefined
  if (typeof settlementPending !== 'boolean') return undefined
  const [txHash, settledAt] = [textOrNull(body.txHash), textOrNull(body.settledAt)]
  const settlementToken = textOrNull(body.settlementToken)
  if (settlementPending && settlementToken === null) return undefined
  return { valid, paymentId, protocol, amount, coin, payer, txHash, settledAt, settlementPending, settlementToken }
}

function readSettlement(body: unknown): Settlement | undefined {
  if (!isRecord(body)) return undefined
  const txHash = textOrNull(body.txHash)
  if (body.status === 'settling') return { status: 'settling', txHash }
  const settledAt = body.settledAt
  return typeof settledAt === 'string' ? { status: 'settled', txHash, settledAt } : undefined
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
