import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
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
): Promise<BankAccountRow[]> {
  return db.many(
    BankAccountRow,
    sql`
    select ${columns} from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null
      and (${page.after ?? null}::text is null or id < ${page.after ?? null})
    order by id desc limit ${page.limit + 1}`,
  )
}

/** Takes the account out of use and forgets its details; false when there is none. */
export async function markDeleted(tx: Tx, tenant: Tenant, accountId: BankAccountId, deletedAt: Date): Promise<boolean> {
  const deleted = await tx.run(sql`
    update bank_accounts set deleted_at = ${deletedAt}, is_active = false, details = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${accountId} and deleted_at is null`)
  return deleted === 1
}

/** The account's id at a partner; undefined where the partner was never told of it. */
export async function findPayoutAccount(
  db: Queryable,
  tenant: Tenant,
  { bankAccountId, partner }: { readonly bankAccountId: BankAccountId; readonly partner: string },
): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ accountId: z.string() }),
    sql`
    select p.account_id from payout_accounts p join bank_accounts b on b.id = p.bank_account_id
    where b.organisation_id = ${tenant.organisationId} and b.environment = ${tenant.environment} and b.id = ${bankAccountId}
      and b.deleted_at is null and p.partner = ${partner}`,
  )
  return row?.accountId
}

/** Remembers a bank account's id at a partner; the first one stays. The caller has read the account as its tenant's. */
export async function insertPayoutAccount(
  db: Queryable,
  tenant: Tenant,
  account: { readonly bankAccountId: BankAccountId; readonly partner: string; readonly accountId: string },
): Promise<void> {
  await db.run(sql`
    insert into payout_accounts (bank_account_id, partner, account_id)
    select id, ${account.partner}, ${account.accountId} from bank_accounts
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${account.bankAccountId}
    on conflict do nothing`)
}
