import { call } from './call.ts'
import { paymentLogsAt } from './payments.ts'
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
    paymentLogs: paymentLogsAt(send, '/account/payment-logs'),
  }
}
