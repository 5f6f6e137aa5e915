import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { type AccountId, id, type OrganisationId } from '../../platform/ids.ts'
import { paymentsLockName } from '../plans/index.ts'
import { shownId } from './member-store.ts'
import { type OrganisationRow, organisationColumns, OrganisationRow as Row } from './store.ts'

/**
 * Locks the organisation until the transaction ends, so that nothing is inserted for it meanwhile, and payments are not recorded; undefined if it was
 * deleted. A transaction that inserted something for it ends first. Recording a payment takes the lock of payments first, so this does
 * too.
 */
export async function lockForDeletion(tx: Tx, organisationId: OrganisationId): Promise<OrganisationRow | undefined> {
  const names = (['live', 'test'] as const).map((environment) => paymentsLockName({ organisationId, environment }))
  await tx.run(sql`
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from (
      select name from unnest(${names}::text[]) as given (name) order by name collate "C" offset 0) as ordered`)
  return tx.maybeOne(
    Row,
    sql`select ${organisationColumns} from organisations where id = ${organisationId} and deleted_at is null for update`,
  )
}

/** Locks an organisation that was deleted, until the transaction ends. */
export function lockDeleted(tx: Tx, organisationId: OrganisationId): Promise<OrganisationRow | undefined> {
  return tx.maybeOne(
    Row,
    sql`select ${organisationColumns} from organisations where id = ${organisationId} and deleted_at is not null for update`,
  )
}

export const blockerKinds = [
  'payments',
  'transfers',
  'refunds',
  'withdrawals',
  'approvals',
  'wallets',
  'vaults',
  'sessions',
] as const

const BlockerRow = z.object({ kind: z.enum(blockerKinds), count: z.number(), ids: z.array(z.string()) })
export type Blocker = z.output<typeof BlockerRow>

/** Whether the payment of this id ended without money or is refunded in full: what it bought is of no use any more, as in `sessions/store.ts`. */
function isWithoutMoney(organisationId: OrganisationId, paymentId: Sql): Sql {
  // A scalar subquery reads the payment by its id, and only of rows that the other conditions leave.
  return sql`coalesce((
    select status in ('settlement_failed', 'voided') or (refunded_raw > 0 and refunded_raw >= raw_amount)
    from payments where payments.organisation_id = ${organisationId} and payments.id = ${paymentId}), false)`
}

/** Whether the vault has a token that is neither expired nor revoked, and whose key is not revoked. */
function hasToken(organisationId: OrganisationId, now: Date): Sql {
  return sql`exists (
    select from vault_tokens as token
    where token.organisation_id = ${organisationId} and token.vault_id = vaults.id and token.kind = 'token' and token.revoked_at is null
      and token.opened_at is null and token.expires_at > ${now}
      and not exists (select from api_keys where api_keys.id = token.made_by and api_keys.revoked_at is not null))`
}

/** Expression on a group of `wallet_rollups part`, all of one token of a wallet: the amount that is frozen there. */
const frozenOfPart: Sql = sql`coalesce((
          select place.raw_frozen from tainted_places as place
          where place.organisation_id = part.organisation_id and place.wallet_id = part.wallet_id and place.network = part.network
            and place.token = part.token), 0)`

/**
 * Condition on `master_wallets`, retired: a whole token or more of a booked balance is not frozen, at the wallet or a child of it. On the wallet's network only money
 * that was frozen when it was retired counts.
 */
const hasRest: Sql = sql`exists (
          select from (
            select master_wallets.id union all select child.id from child_addresses as child where child.master_wallet_id = master_wallets.id
          ) as own (id)
          join wallet_rollups as part on part.wallet_id = own.id and part.organisation_id = master_wallets.organisation_id
          where master_wallets.retired_with_frozen or part.network <> master_wallets.network
          group by part.organisation_id, part.wallet_id, part.network, part.token
          having sum(part.raw_amount) - ${frozenOfPart} >= power(10::numeric, (
            select decimals from wallet_transactions as booked
            where booked.wallet_id = part.wallet_id and booked.network = part.network and booked.token = part.token and booked.status <> 'withdrawn' limit 1)))`

/**
 * Returns what keeps the organisation from being deleted: by kind the count and up to ten ids. What it finds stays only while the organisation is locked. It names tables
 * of other features, because one statement sees all of them as of one instant.
 */
export function listBlockers(db: Queryable, organisationId: OrganisationId, now: Date): Promise<Blocker[]> {
  return db.many(
    BlockerRow,
    sql`
    with found as (
      select 'payments' as kind, id from payments
      where organisation_id = ${organisationId} and environment in ('test', 'live') and status in ('verified', 'settling')
      union all
      select 'transfers', id from transfers
      where organisation_id = ${organisationId} and ended_at is null and purpose <> 'withdrawal'
        and not exists (select from payment_refunds where transfer_id = transfers.id)
        and not exists (select from movement_approvals where subject_id = transfers.id and status = 'waiting')
      union all
      select 'refunds', id from payment_refunds where organisation_id = ${organisationId} and status = 'pending'
      union all
      select 'withdrawals', id from withdrawals
      where organisation_id = ${organisationId}
        and (status not in ('completed', 'failed') or environment = 'live'
          and (refund in ('expected', 'held') or status = 'completed' and next_look_at is not null))
      union all
      select 'approvals', id from movement_approvals where organisation_id = ${organisationId} and status = 'waiting'
      union all
      select 'wallets', id from master_wallets
      where organisation_id = ${organisationId} and environment = 'live' and legacy_coin is null and (
        retired_at is null or exists (
          select from (
            select master_wallets.id union all select child.id from child_addresses as child where child.master_wallet_id = master_wallets.id
          ) as own (id)
          join wallet_transactions as deposit on deposit.organisation_id = ${organisationId} and deposit.environment = 'live'
            and deposit.wallet_id = own.id and deposit.direction = 'in'
          where deposit.status <> 'withdrawn' and deposit.aml_status <> 'flagged' and deposit.created_at > master_wallets.retired_at
          having sum((deposit.raw_amount - deposit.frozen_raw_amount) / power(10::numeric, deposit.decimals)) >= 1)
        or ${hasRest})
      union all
      select 'wallets', id from master_wallets
      where organisation_id = ${organisationId} and environment = 'live' and legacy_coin is not null and exists (
        select from wallet_rollups as part where part.wallet_id = master_wallets.id and part.organisation_id = ${organisationId}
        group by part.organisation_id, part.wallet_id, part.network, part.token having sum(part.raw_amount) > ${frozenOfPart})
      union all
      select 'vaults', id from vaults
      where organisation_id = ${organisationId} and environment = 'live' and payment_id is not null and coalesce(expires_at > ${now}, true)
        and (sealed_at is null or ${hasToken(organisationId, now)}) and not ${isWithoutMoney(organisationId, sql`vaults.payment_id`)}
      union all
      select 'sessions', id from sessions
      where organisation_id = ${organisationId} and environment = 'live' and revoked_at is null and expires_at > ${now}
        and not ${isWithoutMoney(organisationId, sql`sessions.payment_id`)}
    )
    select kind, count(*)::int as count, (array_agg(id order by id))[1:10] as ids from found group by kind`,
  )
}

/** Marks the organisation as deleted. It is suspended too, so that public lists and automatic sweeps leave it out. */
export async function markDeleted(tx: Tx, organisationId: OrganisationId, deletedAt: Date): Promise<void> {
  await tx.run(sql`
    update organisations set deleted_at = ${deletedAt}, suspended_at = ${deletedAt}, suspension_reason = 'The organisation was deleted.',
      founder_id = coalesce((
        select account_id from members
        where members.organisation_id = organisations.id and members.created_at = organisations.created_at limit 1), founder_id)
    where id = ${organisationId}`)
}

/** Undoes `markDeleted`, and ends the alert of late deposits. The founder stays known: the membership of a restored organisation is later than the organisation. */
export async function markRestored(tx: Tx, organisationId: OrganisationId): Promise<void> {
  await tx.run(sql`
    update organisations set deleted_at = null, suspended_at = null, suspension_reason = null where id = ${organisationId}`)
  await tx.run(sql`delete from late_deposits where organisation_id = ${organisationId}`)
}

const BankAccount = z.object({ id: id('bac') })

/**
 * Locks the bank accounts of the organisation, before its own row: a withdrawal that is requested locks the account first. The lock does not exclude that
 * of a foreign key: who inserts a withdrawal locks the organisation before it.
 */
export async function lockBankAccounts(tx: Tx, organisationId: OrganisationId): Promise<void> {
  await tx.run(
    sql`select from bank_accounts where organisation_id = ${organisationId} and deleted_at is null order by id for no key update`,
  )
}

/**
 * Deletes the bank accounts, erases their details, and schedules their deletion by partners, as the deletion of each one does; returns how many. The
 * caller has locked them.
 */
export async function deleteBankAccounts(tx: Tx, organisationId: OrganisationId, deletedAt: Date): Promise<number> {
  const rows = await tx.many(
    BankAccount,
    sql`
    with known as (
      select id from bank_accounts where organisation_id = ${organisationId} and deleted_at is null
    ), scheduled as (
      update payout_accounts set remove_at = ${deletedAt} where bank_account_id in (select id from known) and removed_at is null
    )
    update bank_accounts set deleted_at = ${deletedAt}, is_active = false,
      details = case when exists (select from payout_accounts where bank_account_id = bank_accounts.id and account_id is null) then details end
    where id in (select id from known) returning id`,
  )
  return rows.length
}

const Removed = z.object({ shownId: id('acc') })

/** Removes all members and invitations; returns the ids of their accounts, as the organisation saw them. */
export async function deleteMembers(tx: Tx, organisationId: OrganisationId): Promise<AccountId[]> {
  const rows = await tx.many(
    Removed,
    sql`delete from members where organisation_id = ${organisationId} returning ${shownId} as shown_id`,
  )
  return rows.map((row) => row.shownId)
}
