import type { z } from 'zod'
import { failPlatform } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { refuseEndedCaller } from '../../callers/index.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { sealDetails } from './payout-account.ts'
import { currencies, detailsOf, faultsOfLiveDetails, isCurrency, maskOf } from './rules.ts'
import type { BankAccount, NewBankAccount } from './schema.ts'
import {
  type BankAccountId,
  type BankAccountRow,
  findBankAccount,
  insertBankAccount,
  listBankAccounts,
  lockBankAccount,
  markDeleted,
} from './store.ts'

/**
 * Stores a bank account for payouts. Its details are sealed before they reach the database, and the response, the audit log and the
 * response stored for the Idempotency-Key contain at most the last four characters.
 */
export async function createBankAccount(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'db' | 'person' | 'random' | 'sealer' | 'tenant'>,
  request: NewBankAccount,
): Promise<BankAccount> {
  const currency = request.currency.trim().toUpperCase()
  if (!isCurrency(currency)) throw fail('unsupported-currency', { supported: currencies })
  const faults = ctx.tenant.environment === 'live' ? faultsOfLiveDetails(currency, request) : []
  const errors = faults.map(({ field, message }) => ({ path: `/${field}`, message }))
  if (errors.length > 0) throw failPlatform('validation-error', { errors })
  const details = detailsOf(currency, request)
  const account: BankAccountRow = {
    id: newId('bac', ctx),
    accountName: request.accountName,
    currency,
    maskedAccount: maskOf(details),
    isActive: true,
    createdAt: ctx.clock.now(),
  }
  const sealed = sealDetails(ctx, account.id, details)
  await ctx.db.tx(async (tx) => {
    await insertBankAccount(tx, ctx.tenant, account, sealed)
    await refuseEndedCaller(ctx, tx)
    await ctx.audit(tx, { action: 'withdrawals.bankAccounts.create', target: account.id, details: { currency } })
  })
  return account
}

export async function getBankAccount(ctx: Pick<Ctx, 'db' | 'tenant'>, accountId: BankAccountId): Promise<BankAccount> {
  const account = await findBankAccount(ctx.db, ctx.tenant, accountId)
  if (account === undefined) throw fail('bank-account-not-found')
  return account
}

export async function pageOfBankAccounts(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<BankAccount>> {
  const rows = await listBankAccounts(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  return pageOf(rows, query.limit, (row) => row.id)
}

/**
 * Deletes the account. Its details are erased, here immediately and at the partner by `removePayoutAccounts`; its row stays, since
 * withdrawals refer to it. Returns, or throws 404 for one that is deleted, when the witness covers it.
 */
export async function deleteBankAccount(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'tenant' | 'witness'>,
  accountId: BankAccountId,
): Promise<void> {
  const wasPresent = await ctx.db.tx(async (tx) => {
    const isPresent = await lockBankAccount(tx, ctx.tenant, accountId)
    tx.beforeReturn(isPresent ? ctx.witness.cover : ctx.witness.coverRepetition)
    if (!isPresent) return false
    await markDeleted(tx, ctx.tenant, accountId, ctx.clock.now())
    await ctx.audit(tx, { action: 'withdrawals.bankAccounts.delete', target: accountId })
    return true
  })
  if (!wasPresent) throw fail('bank-account-not-found')
}
