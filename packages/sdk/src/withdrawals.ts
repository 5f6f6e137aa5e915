import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Answer, Body } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewBankAccount = Body<operations['withdrawals.bankAccounts.create']>
/** Without its details: they are never answered. */
export type BankAccount = Answer<operations['withdrawals.bankAccounts.get']>

/** The operations on bank accounts that money is paid out to. */
export function withdrawalsOf(send: Send) {
  const at = (id: string, options?: CallOptions) => ({ ...options, params: { id } })
  return {
    bankAccounts: {
      create: (body: NewBankAccount, options?: CallOptions): Promise<BankAccount> =>
        call(send, 'POST', '/wallet-infra/bank-accounts', { ...options, body }),
      list: (query?: PageQuery, options?: CallOptions): Listing<BankAccount> =>
        list(send, '/wallet-infra/bank-accounts', { ...options, query }),
      get: (id: string, options?: CallOptions): Promise<BankAccount> =>
        call(send, 'GET', '/wallet-infra/bank-accounts/{id}', at(id, options)),
      delete: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'DELETE', '/wallet-infra/bank-accounts/{id}', at(id, options)),
    },
  }
}
