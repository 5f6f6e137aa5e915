import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Query, ResponseBody } from './operations.ts'
import type { Listing } from './paging.ts'
import {
  type Challenge,
  confirm,
  type Redemption,
  readChallenge,
  readChallenges,
  readRedemption,
  readSettlement,
  readVerification,
  type Settlement,
  type Verification,
} from './payment-responses.ts'
import type { CallOptions, Send } from './transport.ts'

export type { Challenge, Settlement, Verification, X402V1Body } from './payment-responses.ts'

type ChallengeBody = Body<operations['payments.challenge']>

/** The wallet, resource and price of a payment. `price` is decimal USD, such as `0.01`. */
export type ChallengeRequest = Omit<ChallengeBody, 'count' | 'compact'>

/** As `ChallengeRequest`; `count` is at most 100. */
export type ChallengesRequest = ChallengeRequest & Readonly<Required<Pick<ChallengeBody, 'count'>>>

/** `credential` is the header's raw value, `network` a CAIP-2 id. */
export type VerifyRequest = Body<operations['payments.verify']>

/** The payment as the handler sees it: without the token that settles it. */
export type VerifiedPayment = Omit<Verification, 'valid' | 'settlementToken'>

type DeliveredRequest = Body<operations['payments.delivered']>
type Delivered = ResponseBody<operations['payments.delivered']>
export type RefundRequest = Body<operations['payments.refund']>
export type Refund = ResponseBody<operations['payments.refund']>
export type RefundQuery = Query<operations['payments.refunds.list']>
type RedeemedRequest = Body<operations['payments.redeemed']>
export type RedeemRequest = Body<operations['payments.redeem']>

export type SettleRequest = Body<operations['payments.settle']>
export type ReleaseRequest = Body<operations['payments.release']>

export type Payment = ResponseBody<operations['payments.get']>
export type PaymentStatus = Payment['status']
export type Protocol = Payment['protocol']

export type PaymentLog = Item<operations['payments.logs.list']>
/** `from` and `to` are ISO 8601. */
export type PaymentLogFilters = Query<operations['payments.logs.summary']>
export type PaymentLogQuery = Query<operations['payments.logs.list']>
export type PaymentStatistics = ResponseBody<operations['payments.statistics']>
export type PaymentStatisticsQuery = Query<operations['payments.statistics']>
export type RouteSummary = Item<operations['payments.logs.summary']>

/** The operations on payments. Responses that money depends on are validated. */
export function paymentsOf(send: Send) {
  return {
    ...challengesOf(send),
    /**
     * Verifies a payment credential and records the payment once. Throws `PaymentRefusedError` with `reason` for an
     * invalid credential, and `ConflictError` for a used one.
     */
    verify: async (body: VerifyRequest, options?: CallOptions): Promise<Verification> =>
      confirm(await send('POST', '/payments/verify', { ...options, body }), readVerification),
    /**
     * Settles a verified payment on chain. Resolves with `settled`, or with `settling` if its outcome is not known in
     * time: call it again.
     */
    settle: async (body: SettleRequest, options?: CallOptions): Promise<Settlement> =>
      confirm(await send('POST', '/payments/settle', { ...options, body }), readSettlement),
    /** Voids a verified payment that you will not settle, so that it does not count in the month and reserves no gas. */
    release: (id: string, body: ReleaseRequest, options?: CallOptions): Promise<Payment> =>
      call(send, 'POST', '/payments/{id}/release', { ...options, params: { id }, body }),
    ...deliveryOf(send),
    /**
     * Refunds a settled payment to its payer, in whole or in part. `payment.refunded` reports that the refund is
     * final on chain.
     */
    refund: (id: string, body: RefundRequest = {}, options?: CallOptions): Promise<Refund> =>
      call(send, 'POST', '/payments/{id}/refund', { ...options, params: { id }, body }),
    refunds: {
      /** The refunds of a payment, newest first. */
      list: (id: string, query?: RefundQuery, options?: CallOptions): Listing<Refund> =>
        list(send, '/payments/{id}/refunds', { ...options, params: { id }, query }),
    },
    /** Returns a payment. Throws `NotFoundError` for an unknown id. */
    get: (id: string, options?: CallOptions): Promise<Payment> =>
      call(send, 'GET', '/payments/{id}', { ...options, params: { id } }),
    /** Counts, amounts, latency and reasons of failures, per interval of time. */
    statistics: (query: PaymentStatisticsQuery, options?: CallOptions): Promise<PaymentStatistics> =>
      call(send, 'GET', '/payments/statistics', { ...options, query }),
    logs: logsOf(send),
  }
}

function deliveryOf(send: Send) {
  return {
    /** Reports that the responses of these payments (at most 100) were delivered to their payers. */
    delivered: (body: DeliveredRequest, options?: CallOptions): Promise<Delivered> =>
      call(send, 'POST', '/payments/delivered', { ...options, body }),
    /** Requests the right to serve a payment that was settled but never delivered. */
    redeem: async (body: RedeemRequest, options?: CallOptions): Promise<Redemption> =>
      confirm(await send('POST', '/payments/redeem', { ...options, body }), readRedemption),
    /** Finishes a redemption. Send the response only if it succeeds. */
    redeemed: (id: string, body: RedeemedRequest, options?: CallOptions): Promise<Payment> =>
      call(send, 'POST', '/payments/{id}/redeemed', { ...options, params: { id }, body }),
    /** Reverts a finished redemption whose response was not sent. The payment can be redeemed again at once. */
    undelivered: (id: string, body: RedeemedRequest, options?: CallOptions): Promise<Payment> =>
      call(send, 'POST', '/payments/{id}/undelivered', { ...options, params: { id }, body }),
  }
}

function challengesOf(send: Send) {
  const post = (body: ChallengeBody, options?: CallOptions) =>
    send('POST', '/payments/challenge', { keyless: true, ...options, body })
  return {
    /** Creates a challenge: the headers and body of a 402 for one route. `price` is decimal USD. */
    challenge: async (body: ChallengeRequest, options?: CallOptions): Promise<Challenge> =>
      confirm(await post(body, options), readChallenge),
    /** Creates up to 100 challenges for one route. Use each for one payer. */
    challenges: async (body: ChallengesRequest, options?: CallOptions): Promise<Challenge[]> =>
      confirm(await post({ ...body, compact: true }, options), (response) => readChallenges(response, body.count)),
  }
}

function logsOf(send: Send) {
  return {
    /** Payment logs, newest first. */
    list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
      list(send, '/payments/logs', { ...options, query }),
    /** Payment totals per route and token. */
    summary: (query?: PaymentLogFilters, options?: CallOptions): Promise<readonly RouteSummary[]> =>
      call(send, 'GET', '/payments/logs/summary', { ...options, query }),
    /** Returns a payment log. Throws `NotFoundError` for an unknown id. */
    get: (paymentLogId: string, options?: CallOptions): Promise<PaymentLog> =>
      call(send, 'GET', '/payments/logs/{paymentLogId}', { ...options, params: { paymentLogId } }),
  }
}
