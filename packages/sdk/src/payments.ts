import { call, path } from './call.ts'
import { type Listing, listing, type PageQuery } from './paging.ts'
import { believe, readChallenge, readChallenges, readSettlement, readVerification } from './payment-answers.ts'
import type { CallOptions, Send } from './transport.ts'

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
  /** Value of the `PAYMENT-REQUIRED` header; null when x402 was not asked for. */
  readonly x402: string | null
  readonly x402V1: X402V1Body | null
  /** Value of the `WWW-Authenticate` header; null when MPP was not asked for, or the wallet has none to offer. */
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
  /** Address of the payer; null for a stub. */
  readonly payer: string | null
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

export interface Payment {
  readonly id: string
  readonly status: PaymentStatus
  readonly protocol: Protocol
  readonly amount: string
  /** In the token's smallest unit. */
  readonly rawAmount: string
  readonly token: string
  readonly chain: string
  /** CAIP-2 of the network that it really runs on. */
  readonly network: string
  readonly payer: string | null
  readonly payTo: string
  readonly walletId: string
  readonly resource: string | null
  readonly route: string | null
  readonly method: string | null
  readonly description: string | null
  readonly apiKeyId: string
  readonly txHash: string | null
  readonly settledAt: string | null
  readonly failureReason: string | null
  readonly vaultId: string | null
  readonly sessionId: string | null
  readonly createdAt: string
}

export interface PaymentLog {
  readonly id: string
  readonly paymentId: string
  readonly route: string | null
  readonly method: string | null
  readonly amount: string
  readonly token: string
  readonly chain: string
  readonly protocol: Protocol
  readonly txHash: string | null
  readonly payer: string | null
  readonly walletId: string
  readonly vaultId: string | null
  readonly sessionId: string | null
  readonly apiKeyId: string
  readonly status: PaymentStatus
  readonly createdAt: string
}

export interface PaymentLogFilters {
  readonly route?: string
  readonly protocol?: Protocol
  readonly walletId?: string
  readonly apiKeyId?: string
  /** ISO 8601. */
  readonly from?: string
  readonly to?: string
}

export interface PaymentLogQuery extends PaymentLogFilters, PageQuery {}

export interface RouteSummary {
  readonly route: string | null
  readonly totalPayments: number
  readonly totalRevenue: string
  readonly token: string
}

/**
 * The operations on payments. The answers that money hangs on are checked member by member before they are believed.
 */
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
    get: (paymentId: string, options?: CallOptions) =>
      call<Payment>(send, 'GET', path`/payments/${paymentId}`, options),
    logs: paymentLogsAt(send, '/payments/logs'),
  }
}

/** The operations on payment logs, which the account has too. */
export function paymentLogsAt(send: Send, base: '/payments/logs' | '/account/payment-logs') {
  return {
    list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> => listing(send, base, query, options),
    summary: (query?: PaymentLogFilters, options?: CallOptions) =>
      call<readonly RouteSummary[]>(send, 'GET', `${base}/summary`, { ...options, query: { ...query } }),
    get: (paymentLogId: string, options?: CallOptions) =>
      call<PaymentLog>(send, 'GET', base + path`/${paymentLogId}`, options),
  }
}
