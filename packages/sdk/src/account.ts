import { call, path } from './call.ts'
import { type Listing, listing } from './paging.ts'
import type { PaymentLog, PaymentLogQuery, RouteSummary } from './payments.ts'
import type { CallOptions, Send } from './transport.ts'

export interface Account {
  readonly id: string
  readonly email: string
  readonly name: string | null
  readonly organisations: readonly { readonly id: string; readonly [member: string]: unknown }[]
}

/** The operations on the account behind the calling key. */
export function accountOf(send: Send) {
  return {
    get: (options?: CallOptions) => call<Account>(send, 'GET', '/account', options),
    usage: (options?: CallOptions) => call<Record<string, unknown>>(send, 'GET', '/account/usage', options),
    paymentLogs: {
      list: (query?: PaymentLogQuery, options?: CallOptions): Listing<PaymentLog> =>
        listing(send, '/account/payment-logs', query, options),
      summary: (query?: PaymentLogQuery, options?: CallOptions): Listing<RouteSummary> =>
        listing(send, '/account/payment-logs/summary', query, options),
      get: (paymentLogId: string, options?: CallOptions) =>
        call<PaymentLog>(send, 'GET', path`/account/payment-logs/${paymentLogId}`, options),
    },
  }
}
