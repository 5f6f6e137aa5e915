import type { Operation } from '../../../platform/operation.ts'
import { PageQuery } from '../../../platform/wire.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { createBankAccount, deleteBankAccount, getBankAccount, pageOfBankAccounts } from './bank-accounts.ts'
import { BankAccount, BankAccountParams, NewBankAccount } from './schema.ts'

const notFound = { 'bank-account-not-found': fail.table['bank-account-not-found'] }

export const bankAccountOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'withdrawals.bankAccounts.create',
    // It includes the deletion, which has no limit: details of a bank account can be erased at any time.
    settingCost: 2,
    needs: { role: 'member', scope: 'money' },
    method: 'POST',
    path: '/wallet-infra/bank-accounts',
    summary: 'Register a bank account for withdrawals.',
    description:
      'GBP takes sortCode and accountNumber, USD routingNumber and accountNumber, EUR iban and swiftBic. Spaces, hyphens and lower case are accepted. The details are stored encrypted and never returned.',
    input: NewBankAccount,
    output: BankAccount,
    status: 201,
    errors: { 'unsupported-currency': fail.table['unsupported-currency'] },
    secretInput: true,
    run: (ctx, { body }) => createBankAccount(ctx, body),
  }),
  operation({
    id: 'withdrawals.bankAccounts.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/bank-accounts',
    summary: 'List bank accounts, newest first.',
    description: '`maskedAccount` helps to recognize an account. Its details are never returned.',
    query: PageQuery,
    output: BankAccount,
    list: true,
    run: (ctx, { query }) => pageOfBankAccounts(ctx, query),
  }),
  operation({
    id: 'withdrawals.bankAccounts.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/bank-accounts/{id}',
    summary: 'Get one bank account.',
    description: '`maskedAccount` helps to recognize the account. Its details are never returned.',
    params: BankAccountParams,
    output: BankAccount,
    errors: notFound,
    run: (ctx, { params }) => getBankAccount(ctx, params.id),
  }),
  operation({
    id: 'withdrawals.bankAccounts.delete',
    needs: { role: 'member', scope: 'money' },
    method: 'DELETE',
    path: '/wallet-infra/bank-accounts/{id}',
    summary: 'Delete a bank account and erase its details.',
    description: 'It can no longer receive withdrawals.',
    params: BankAccountParams,
    errors: notFound,
    run: (ctx, { params }) => deleteBankAccount(ctx, params.id),
  }),
]
