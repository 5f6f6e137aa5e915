import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../../platform/db/page.ts'
import { type Id, id } from '../../../platform/ids.ts'

export type BankAccountId = Id<'bac'>

export const BankAccountRow = z.object({
  id: id('bac'),
  accountName: z.string(),
  currency: z.string(),
  maskedAccount: z.string(),
  isActive: z.boolean(),
  createdAt: z.date(),
})
export type BankAccountRow = z.output<typeof BankAccountRow>

const columns = sql`id, account_name, currency, masked_account, is_active, created_at`

export async function insertBankAccount(
  tx: Tx,
  tenant: Tenant,
  account: BankAccountRow,
  sealedDetails: Uint8Array,
): Promise<void> {
  await tx.run(sql`
    insert into bank_accounts (id, organisation_id, environment, account_name, currency, masked_account, is_active, details, created_at)
    values (${account.id}, ${tenant.organisationId}, ${tenant.environment}, ${account.accountName}, ${account.currency},
      ${account.maskedAccount}, ${account.isActive}, ${sealedDetails}, ${account.createdAt})`)
}

export function findBankAccount(
  db: Queryable,
  tenant: Tenant,
  accountId: BankAccountId,
): Promise<BankAccountRow | undefined> {
  return db.maybeOne(
    BankAccountRow,
    sql`
    select ${columns} from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${accountId} and deleted_at is null`,
  )
}

/** The sealed details of an account that is not deleted. */
export async function findSealedDetails(
  db: Queryable,
  tenant: Tenant,
  accountId: BankAccountId,
): Promise<Uint8Array | undefined> {
  const row = await db.maybeOne(
    z.object({ details: z.instanceof(Uint8Array) }),
    sql`
    select details from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${accountId} and deleted_at is null`,
  )
  return row?.details
}

/** Bank accounts, newest first, one more than the limit. */
export function listBankAccounts(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<BankAccountRow>> {
  return listRows(
    db,
    BankAccountRow,
    page.limit,
    sql`
    select ${columns} from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null
      and ${isBelow(sql`id`, page.after)}
    order by id desc`,
  )
}

/** Locks the account's row until the transaction ends; false if there is none, or it is deleted. */
export function lockBankAccount(tx: Tx, tenant: Tenant, accountId: BankAccountId): Promise<boolean> {
  return lockWith(tx, tenant, accountId, sql`for update`)
}

/** Keeps the account from deletion until the transaction ends; false if there is none, or it is deleted. Waits for a concurrent deletion. */
export function keepBankAccount(tx: Tx, tenant: Tenant, accountId: BankAccountId): Promise<boolean> {
  return lockWith(tx, tenant, accountId, sql`for share`)
}

async function lockWith(tx: Tx, tenant: Tenant, accountId: BankAccountId, lock: Sql): Promise<boolean> {
  const row = await tx.maybeOne(
    z.object({ id: id('bac') }),
    sql`
    select id from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${accountId} and deleted_at is null
    ${lock}`,
  )
  return row !== undefined
}

/**
 * Deletes the account, erases its details, and schedules its deletion by partners. The details stay while a partner's response is missing.
 * The caller has locked the row, so that no partner is called meanwhile.
 */
export async function markDeleted(tx: Tx, tenant: Tenant, accountId: BankAccountId, deletedAt: Date): Promise<void> {
  await tx.run(sql`
    update bank_accounts set deleted_at = ${deletedAt}, is_active = false,
      details = case when exists (select from payout_accounts where bank_account_id = ${accountId} and account_id is null) then details end
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${accountId}`)
  await tx.run(sql`
    update payout_accounts set remove_at = ${deletedAt}
    from bank_accounts
    where bank_accounts.id = bank_account_id and organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and bank_account_id = ${accountId} and removed_at is null`)
}
