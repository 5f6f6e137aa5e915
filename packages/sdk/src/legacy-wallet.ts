import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { TransactionQuery, WalletTransaction } from './managed-wallets.ts'
import type { Body, Json, Query, ResponseBody } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewLegacyWallet = Body<operations['wallets.legacy.create']>
export type LegacyWallet = ResponseBody<operations['wallets.legacy.get']>
export type LegacyBalance = ResponseBody<operations['wallets.legacy.balance']>
export type LegacyBalanceQuery = Query<operations['wallets.legacy.balance']>
export type NewLegacyWithdrawal = Body<operations['wallets.legacy.withdraw']>
export type LegacyWithdrawal = Json<operations['wallets.legacy.withdraw']['responses'][202]>

/** The operations of the older API on an organisation's one wallet per environment. */
export function legacyWalletOf(send: Send) {
  return {
    /** Creates the wallet. Later calls return the existing one. */
    create: (body: NewLegacyWallet = {}, options?: CallOptions): Promise<LegacyWallet> =>
      call(send, 'POST', '/wallets', { ...options, body }),
    /** Returns the legacy wallet of the organisation. */
    get: (options?: CallOptions): Promise<LegacyWallet> => call(send, 'GET', '/wallets/me', { ...options }),
    /** The balance of the legacy wallet, in whole units of each coin. */
    balance: (query?: LegacyBalanceQuery, options?: CallOptions): Promise<LegacyBalance> =>
      call(send, 'GET', '/wallets/balance', { ...options, query }),
    /** Transactions of the legacy wallet, newest first. */
    history: (query?: TransactionQuery, options?: CallOptions): Listing<WalletTransaction> =>
      list(send, '/wallets/history', { ...options, query }),
    /** Returns as soon as the withdrawal is stored. `transfer.completed` or `transfer.failed` reports the outcome. */
    withdraw: (body: NewLegacyWithdrawal, options?: CallOptions): Promise<LegacyWithdrawal> =>
      call(send, 'POST', '/wallets/withdraw', { ...options, body }),
  }
}
