import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Item, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { PaymentLog, PaymentLogFilters, PaymentLogQuery, RouteSummary } from './payments.ts'
import type { CallOptions, Send } from './transport.ts'

export type Account = ResponseBody<operations['account.get']>
/** Usage against the plan in this period. A limit of -1 means no limit. */
export type Usage = ResponseBody<operations['account.usage']>

/** A browser in which a person is signed in. */
export type SignInSession = Item<operations['account.sessions.list']>

/** The operations on the account behind the calling key. */
export function accountOf(send: Send) {
  return {
    /** The account of the caller with its organisations and open invitations. */
    get: (options?: CallOptions): Promise<Account> => call(send, 'GET', '/account', { ...options }),
    /** The usage of this period and the limits of the plan; -1 means no limit. */
    usage: (options?: CallOptions): Promise<Usage> => call(send, 'GET', '/account/usage', { ...options }),
    invitations: {
      /** `id` is the id of the organisation: an invitation has none of its own. */
      accept: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'POST', '/account/invitations/{id}/accept', { ...options, params: { id } }),
      /** Declines an invitation. `id` is the organisation's (`org_…`). */
      decline: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'POST', '/account/invitations/{id}/decline', { ...options, params: { id } }),
    },
    /** The sign-in sessions of the calling person. An API key has none. */
    sessions: {
      /** The sign-in sessions of the person, newest first. */
      list: (query?: PageQuery, options?: CallOptions): Listing<SignInSession> =>
        list(send, '/account/sessions', { ...options, query }),
      /** Ends a sign-in session immediately. */
      end: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'DELETE', '/account/sessions/{id}', { ...options, params: { id } }),
    },
    paymentLogs: {
      /** Payment logs, newest first. */
      list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
        list(send, '/account/payment-logs', { ...options, query }),
      /** Payment totals per route and token. */
      summary: (query?: PaymentLogFilters, options?: CallOptions): Promise<readonly RouteSummary[]> =>
        call(send, 'GET', '/account/payment-logs/summary', { ...options, query }),
      /** Returns a payment log. Throws `NotFoundError` for an unknown id. */
      get: (paymentLogId: string, options?: CallOptions): Promise<PaymentLog> =>
        call(send, 'GET', '/account/payment-logs/{paymentLogId}', { ...options, params: { paymentLogId } }),
    },
  }
}
