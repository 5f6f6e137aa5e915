import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Query, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewBankAccount = Body<operations['withdrawals.bankAccounts.create']>
/** A bank account without its details, which are never returned. */
export type BankAccount = ResponseBody<operations['withdrawals.bankAccounts.get']>

export type NewWithdrawal = Body<operations['withdrawals.create']>
export type Withdrawal = ResponseBody<operations['withdrawals.get']>
/** `metadata` restricts the list to withdrawals with one member, such as `{ orderId: '42' }`. */
export type WithdrawalQuery = Query<operations['withdrawals.list']>

/** The operations on withdrawals to banks, and on bank accounts. */
export function withdrawalsOf(send: Send) {
  const at = (id: string, options?: CallOptions) => ({ ...options, params: { id } })
  return {
    /**
     * Pays money from a managed wallet or child address to a bank account. `amount` is decimal, in whole tokens.
     * Resolves when the payout partner has accepted the request; an event reports the outcome. Repeat with the same
     * `idempotencyKey` to retry safely.
     */
    create: (body: NewWithdrawal, options?: CallOptions): Promise<Withdrawal> =>
      call(send, 'POST', '/wallet-infra/withdraw', { ...options, body }),
    /** Withdrawals, newest first. */
    list: (query?: WithdrawalQuery, options?: CallOptions): Listing<Withdrawal> =>
      list(send, '/wallet-infra/withdrawals', { ...options, query }),
    /** Returns a withdrawal. Throws `NotFoundError` for an unknown id. */
    get: (id: string, options?: CallOptions): Promise<Withdrawal> =>
      call(send, 'GET', '/wallet-infra/withdrawals/{id}', at(id, options)),
    bankAccounts: {
      /** Registers a bank account. Its details are never returned. */
      create: (body: NewBankAccount, options?: CallOptions): Promise<BankAccount> =>
        call(send, 'POST', '/wallet-infra/bank-accounts', { ...options, body }),
      /** Bank accounts without their details, newest first. */
      list: (query?: PageQuery, options?: CallOptions): Listing<BankAccount> =>
        list(send, '/wallet-infra/bank-accounts', { ...options, query }),
      /** Returns a bank account without its details. */
      get: (id: string, options?: CallOptions): Promise<BankAccount> =>
        call(send, 'GET', '/wallet-infra/bank-accounts/{id}', at(id, options)),
      /** Deletes a bank account and erases its details. */
      delete: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'DELETE', '/wallet-infra/bank-accounts/{id}', at(id, options)),
    },
  }
}
