import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { TransactionQuery, WalletTransaction } from './managed-wallets.ts'
import type { Answer, Body, Json, Query } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewLegacyWallet = Body<operations['wallets.legacy.create']>
export type LegacyWallet = Answer<operations['wallets.legacy.get']>
export type LegacyBalance = Answer<operations['wallets.legacy.balance']>
export type LegacyBalanceQuery = Query<operations['wallets.legacy.balance']>
export type NewLegacyWithdrawal = Body<operations['wallets.legacy.withdraw']>
export type LegacyWithdrawal = Json<operations['wallets.legacy.withdraw']['responses'][202]>

/** The one wallet that an organisation has in each environment, of the older API. */
export function legacyWalletOf(send: Send) {
  return {
    /** Makes it the first time, and answers the same wallet from then on. */
    create: (body: NewLegacyWallet = {}, options?: CallOptions): Promise<LegacyWallet> =>
      call(send, 'POST', '/wallets', { ...options, body }),
    get: (options?: CallOptions): Promise<LegacyWallet> => call(send, 'GET', '/wallets/me', { ...options }),
    balance: (query?: LegacyBalanceQuery, options?: CallOptions): Promise<LegacyBalance> =>
      call(send, 'GET', '/wallets/balance', { ...options, query }),
    history: (query?: TransactionQuery, options?: CallOptions): Listing<WalletTransaction> =>
      list(send, '/wallets/history', { ...options, query }),
    /** Answers as soon as it is stored; `transfer.completed` or `transfer.failed` tells the end. */
    withdraw: (body: NewLegacyWithdrawal, options?: CallOptions): Promise<LegacyWithdrawal> =>
      call(send, 'POST', '/wallets/withdraw', { ...options, body }),
  }
}
