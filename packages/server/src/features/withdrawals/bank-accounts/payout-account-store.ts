import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { breaksUnique, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type OrganisationId } from '../../../platform/ids.ts'
import { type BankAccountId, keepBankAccount } from './store.ts'

/** A bank account at a partner, under the organisation's customer there; the customer is empty if the partner has none. */
export interface PayoutAccountKey {
  readonly bankAccountId: BankAccountId
  readonly partner: string
  readonly customerId: string
}

/** The organisation's customer at a partner. */
export async function findPayoutCustomer(db: Queryable, tenant: Tenant, partner: string): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ customerId: z.string() }),
    sql`
    select customer_id from payout_customers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and partner = ${partner}`,
  )
  return row?.customerId
}

/** Sets the organisation's customer at a partner; false if the customer is another organisation's, or the organisation does not exist. */
export async function setPayoutCustomer(
  tx: Tx,
  tenant: Tenant,
  { partner, customerId, setAt }: { readonly partner: string; readonly customerId: string; readonly setAt: Date },
): Promise<boolean> {
  const { organisationId, environment } = tenant
  const set = await tx.run(sql`
    insert into payout_customers (organisation_id, environment, partner, customer_id, set_at)
    select id, ${environment}, ${partner}, ${customerId}, ${setAt} from organisations
    where id = ${organisationId} and not exists (
      select from payout_customers where partner = ${partner} and customer_id = ${customerId}
        and (organisation_id, environment) <> (${organisationId}, ${environment}))
    on conflict (organisation_id, environment, partner) do update set customer_id = excluded.customer_id, set_at = excluded.set_at`)
  return set === 1
}

/** The account's id at the partner; undefined if the partner has not created it, or it is not usable. */
export async function findPayoutAccount(
  db: Queryable,
  tenant: Tenant,
  { bankAccountId, partner, customerId }: PayoutAccountKey,
): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ accountId: z.string() }),
    sql`
    select account.account_id from payout_accounts as account join bank_accounts as bank on bank.id = account.bank_account_id
    where bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment} and bank.id = ${bankAccountId}
      and bank.deleted_at is null and account.partner = ${partner} and account.customer_id = ${customerId} and account.is_active
      and account.account_id is not null`,
  )
  return row?.accountId
}

/** The customer under which the partner created an account, whatever the organisation's customer is now. */
export async function findCustomerOfAccount(
  db: Queryable,
  tenant: Tenant,
  { partner, accountId }: { readonly partner: string; readonly accountId: string },
): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ customerId: z.string() }),
    sql`
    select account.customer_id from payout_accounts as account join bank_accounts as bank on bank.id = account.bank_account_id
    where bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment}
      and account.partner = ${partner} and account.account_id = ${accountId}`,
  )
  return row?.customerId
}

/** Records that a request to the partner is about to be sent; false if the bank account is deleted. Waits for a concurrent deletion. */
export async function noteRequest(tx: Tx, tenant: Tenant, account: PayoutAccountKey): Promise<boolean> {
  if (!(await keepBankAccount(tx, tenant, account.bankAccountId))) return false
  await tx.run(sql`
    insert into payout_accounts (bank_account_id, partner, customer_id)
    values (${account.bankAccountId}, ${account.partner}, ${account.customerId}) on conflict do nothing`)
  return true
}

/** Stores the partner's response. Returns false, and stores nothing, if that account is another bank account's, of whatever organisation. */
export async function setPayoutAccount(
  db: Queryable,
  tenant: Tenant,
  { bankAccountId, partner, customerId }: PayoutAccountKey,
  made: { readonly accountId: string; readonly isActive: boolean },
): Promise<boolean> {
  try {
    await db.run(sql`
      update payout_accounts set account_id = ${made.accountId}, is_active = ${made.isActive}
      from bank_accounts as bank
      where bank.id = bank_account_id and bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment}
        and bank_account_id = ${bankAccountId} and partner = ${partner} and customer_id = ${customerId}`)
    return true
  } catch (error) {
    if (breaksUnique(error, 'payout_accounts_once')) return false
    throw error
  }
}

/** Deletes the record of a request after the partner refused to create an account. */
export async function deleteRequest(
  db: Queryable,
  tenant: Tenant,
  { bankAccountId, partner, customerId }: PayoutAccountKey,
): Promise<void> {
  await db.run(sql`
    delete from payout_accounts using bank_accounts as bank
    where bank.id = bank_account_id and bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment}
      and bank_account_id = ${bankAccountId} and partner = ${partner} and customer_id = ${customerId} and account_id is null`)
}

const AccountRemoval = z.object({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  bankAccountId: id('bac'),
  accountName: z.string(),
  partner: z.string(),
  customerId: z.string(),
  accountId: z.string().nullable(),
  details: z.instanceof(Uint8Array).nullable(),
  removeAttempts: z.number(),
  isPaid: z.boolean(),
})
/** An account that its partner must delete. */
export type AccountRemoval = z.output<typeof AccountRemoval> & { readonly organisationId: OrganisationId }

/** A condition: whether `takeRemovals` would take any. */
export function isAnyToRemove(now: Date): Sql {
  return sql`(select remove_at from payout_accounts where remove_at <= ${now} order by remove_at limit 1) is not null`
}

/** Accounts that partners must delete now, postponed until `until` for the next caller; `isPaid` is one with a withdrawal in progress. */
export function takeRemovals(
  db: Queryable,
  { now, until, most }: { readonly now: Date; readonly until: Date; readonly most: number },
): Promise<AccountRemoval[]> {
  return db.many(
    AccountRemoval,
    sql`
    update payout_accounts as account set remove_at = ${until}, remove_attempts = remove_attempts + 1
    from bank_accounts as bank, (
      select bank_account_id, partner, customer_id from payout_accounts
      where remove_at <= ${now} order by remove_at limit ${most} for update skip locked) as due
    where bank.id = account.bank_account_id
      and (account.bank_account_id, account.partner, account.customer_id) = (due.bank_account_id, due.partner, due.customer_id)
    returning bank.organisation_id, bank.environment, account.bank_account_id, bank.account_name, account.partner, account.customer_id,
      account.account_id, bank.details, account.remove_attempts,
      exists (
        select from withdrawals
        where organisation_id = bank.organisation_id and environment = bank.environment and bank_account_id = bank.id
          and status in ('pending_conversion', 'conversion_complete')) as is_paid`,
  )
}

/** Marks an account as deleted by the partner. Its details are erased with the last account whose id was missing. */
export async function markRemoved(tx: Tx, tenant: Tenant, account: PayoutAccountKey, removedAt: Date): Promise<void> {
  await tx.run(sql`
    update payout_accounts set removed_at = ${removedAt}, remove_at = null
    from bank_accounts as bank
    where bank.id = bank_account_id and bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment}
      and bank_account_id = ${account.bankAccountId} and partner = ${account.partner} and customer_id = ${account.customerId}`)
  await tx.run(sql`
    update bank_accounts set details = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${account.bankAccountId}
      and deleted_at is not null and not exists (
        select from payout_accounts where bank_account_id = ${account.bankAccountId} and account_id is null and removed_at is null)`)
}

/** Sets the time of the next request to the partner. */
export async function putOffRemoval(
  db: Queryable,
  tenant: Tenant,
  account: PayoutAccountKey,
  removeAt: Date,
): Promise<void> {
  await db.run(sql`
    update payout_accounts set remove_at = ${removeAt}
    from bank_accounts as bank
    where bank.id = bank_account_id and bank.organisation_id = ${tenant.organisationId} and bank.environment = ${tenant.environment}
      and bank_account_id = ${account.bankAccountId} and partner = ${account.partner} and customer_id = ${account.customerId}
      and removed_at is null`)
}
