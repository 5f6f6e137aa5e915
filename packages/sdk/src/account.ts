import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Answer } from './operations.ts'
import type { Listing } from './paging.ts'
import type { PaymentLog, PaymentLogFilters, PaymentLogQuery, RouteSummary } from './payments.ts'
import type { CallOptions, Send } from './transport.ts'

export type Account = Answer<operations['account.get']>
/** What is used of the plan in this period; a limit of -1 means that there is none. */
export type Usage = Answer<operations['account.usage']>

/** The operations on the account behind the calling key. */
export function accountOf(send: Send) {
  return {
    get: (options?: CallOptions): Promise<Account> => call(send, 'GET', '/account', { ...options }),
    usage: (options?: CallOptions): Promise<Usage> => call(send, 'GET', '/account/usage', { ...options }),
    paymentLogs: {
      list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
        list(send, '/account/payment-logs', { ...options, query }),
      summary: (query?: PaymentLogFilters, options?: CallOptions): Promise<readonly RouteSummary[]> =>
        call(send, 'GET', '/account/payment-logs/summary', { ...options, query }),
      get: (paymentLogId: string, options?: CallOptions): Promise<PaymentLog> =>
        call(send, 'GET', '/account/payment-logs/{paymentLogId}', { ...options, params: { paymentLogId } }),
    },
  }
}
