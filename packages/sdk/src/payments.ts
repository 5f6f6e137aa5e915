import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Answer, Body, Item, Json, Query } from './operations.ts'
import type { Listing } from './paging.ts'
import {
  believe,
  readChallenge,
  readChallenges,
  readRedemption,
  readSettlement,
  readVerification,
} from './payment-answers.ts'
import type { CallOptions, Send } from './transport.ts'

type ChallengeBody = Body<operations['payments.challenge']>
type ChallengeJson = Extract<Answer<operations['payments.challenge']>, { readonly mpp: string | null }>

/** Who is paid, for what, and how much: `price` is decimal USD, such as `0.01`. */
export type ChallengeRequest = Omit<ChallengeBody, 'count' | 'compact'>

/** As `ChallengeRequest`; `count` is at most 100. */
export type ChallengesRequest = ChallengeRequest & Readonly<Required<Pick<ChallengeBody, 'count'>>>

/** The JSON body by which version 1 of x402 asks for a payment: of the document's open record, what is relied on. */
export type X402V1Body = NonNullable<ChallengeJson['x402V1']> & {
  readonly x402Version: number
  readonly accepts: readonly unknown[]
}

/**
 * One request to pay, for one payer: each has randomness of its own, so it must be shown once only. `x402` is the value
 * of the `PAYMENT-REQUIRED` header, `mpp` of `WWW-Authenticate`; null where it was not asked for or cannot be offered.
 */
export type Challenge = Omit<ChallengeJson, 'x402V1'> & { readonly x402V1: X402V1Body | null }

/** `credential` is the header's raw value, `network` a CAIP-2 id. */
export type VerifyRequest = Body<operations['payments.verify']>

/**
 * A yes to a payment. `settlementPending`: `settle` must still be called for the money to move. `settlementToken` is a
 * secret between Purser and whoever verified: it lets the payment be settled.
 */
export type Verification = Answer<operations['payments.verify']>

/** What a paid handler may know of the payment: everything but what lets it be settled. */
export type VerifiedPayment = Omit<Verification, 'valid' | 'settlementToken'>

export type DeliveredRequest = Body<operations['payments.delivered']>
export type Delivered = Answer<operations['payments.delivered']>
export type RefundRequest = Body<operations['payments.refund']>
export type Refund = Answer<operations['payments.refund']>
export type RedeemedRequest = Body<operations['payments.redeemed']>
export type RedeemRequest = Body<operations['payments.redeem']>

/** The right to serve a payment once: its `redemptionToken` goes to `redeemed` before the answer leaves. */
export type Redemption = Answer<operations['payments.redeem']>

export type SettleRequest = Body<operations['payments.settle']>

/** What became of a payment's money so far. `settling`: not known for good yet; with the hash once a block shows the money moving. */
export type Settlement =
  | ({ readonly status: 'settled' } & Answer<operations['payments.settle']>)
  | Json<operations['payments.settle']['responses'][202]>

export type Payment = Answer<operations['payments.get']>
export type PaymentStatus = Payment['status']
export type Protocol = Payment['protocol']

export type PaymentLog = Item<operations['payments.logs.list']>
/** `from` and `to` are ISO 8601. */
export type PaymentLogFilters = Query<operations['payments.logs.summary']>
export type PaymentLogQuery = Query<operations['payments.logs.list']>
export type RouteSummary = Item<operations['payments.logs.summary']>

/**
 * The operations on payments. The answers that money hangs on are checked member by member before they are believed.
 */
export function paymentsOf(send: Send) {
  return {
    ...challengesOf(send),
    verify: async (body: VerifyRequest, options?: CallOptions): Promise<Verification> =>
      believe(await send('POST', '/payments/verify', { ...options, body }), readVerification),
    settle: async (body: SettleRequest, options?: CallOptions): Promise<Settlement> =>
      believe(await send('POST', '/payments/settle', { ...options, body }), readSettlement),
    ...deliveryOf(send),
    /** Pays a settled payment back to its payer, in whole or in part. `payment.refunded` reports that it is on chain for good. */
    refund: (id: string, body: RefundRequest = {}, options?: CallOptions): Promise<Refund> =>
      call(send, 'POST', '/payments/{id}/refund', { ...options, params: { id }, body }),
    get: (id: string, options?: CallOptions): Promise<Payment> =>
      call(send, 'GET', '/payments/{id}', { ...options, params: { id } }),
    logs: logsOf(send),
  }
}

function deliveryOf(send: Send) {
  return {
    /** Reports that the answers of these payments, at most 100, were handed to their payers. */
    delivered: (body: DeliveredRequest, options?: CallOptions): Promise<Delivered> =>
      call(send, 'POST', '/payments/delivered', { ...options, body }),
    /** Asks for the right to serve a payment that was settled and never delivered. */
    redeem: async (body: RedeemRequest, options?: CallOptions): Promise<Redemption> =>
      believe(await send('POST', '/payments/redeem', { ...options, body }), readRedemption),
    /** Finishes a redemption; only where it succeeds may the answer leave. */
    redeemed: (id: string, body: RedeemedRequest, options?: CallOptions): Promise<Payment> =>
      call(send, 'POST', '/payments/{id}/redeemed', { ...options, params: { id }, body }),
    /** Takes back that a redemption was finished, since its answer did not leave: the payment can be redeemed again at once. */
    undelivered: (id: string, body: RedeemedRequest, options?: CallOptions): Promise<Payment> =>
      call(send, 'POST', '/payments/{id}/undelivered', { ...options, params: { id }, body }),
  }
}

function challengesOf(send: Send) {
  const post = (body: ChallengeBody, options?: CallOptions) =>
    send('POST', '/payments/challenge', { keyless: true, ...options, body })
  return {
    challenge: async (body: ChallengeRequest, options?: CallOptions): Promise<Challenge> =>
      believe(await post(body, options), readChallenge),
    /** Several challenges for one route at once (at most 100), each to be shown to one payer. */
    challenges: async (body: ChallengesRequest, options?: CallOptions): Promise<Challenge[]> =>
      believe(await post({ ...body, compact: true }, options), (answer) => readChallenges(answer, body.count)),
  }
}

function logsOf(send: Send) {
  return {
    list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
      list(send, '/payments/logs', { ...options, query }),
    summary: (query?: PaymentLogFilters, options?: CallOptions): Promise<readonly RouteSummary[]> =>
      call(send, 'GET', '/payments/logs/summary', { ...options, query }),
    get: (paymentLogId: string, options?: CallOptions): Promise<PaymentLog> =>
      call(send, 'GET', '/payments/logs/{paymentLogId}', { ...options, params: { paymentLogId } }),
  }
}
