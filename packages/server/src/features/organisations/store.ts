import { z } from 'zod'
import { operatorLog } from '../../platform/audit.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import type { AccountId, ApiKeyId, OrganisationId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { isCounted, PlanName } from '../plans/index.ts'
import { OrganisationType, Role } from './schema.ts'

export const OrganisationRow = z.object({
  id: id('org'),
  name: z.string(),
  type: OrganisationType,
  plan: PlanName,
  createdAt: z.date(),
  suspendedAt: z.date().nullable(),
  suspensionReason: z.string().nullable(),
})
export type OrganisationRow = z.output<typeof OrganisationRow>

/** Every column of an `OrganisationRow`. */
export const organisationColumns = sql`id, name, type, plan, created_at, suspended_at, suspension_reason`

export const AccountRow = z.object({ id: id('acc'), email: z.string(), name: z.string().nullable() })
export type AccountRow = z.output<typeof AccountRow>

/** Creates the organisation; it shares the quotas of its owner. `madeBy`: the account that makes it, if that is not the operator. */
export async function insertOrganisation(
  tx: Tx,
  organisation: OrganisationRow,
  { ownerId, madeBy }: { readonly ownerId: AccountId; readonly madeBy: AccountId | null },
): Promise<void> {
  const { id, name, type, plan, createdAt } = organisation
  await tx.run(sql`
    insert into organisations (id, name, type, plan, created_at, quota_account_id, made_by)
    values (${id}, ${name}, ${type}, ${plan}, ${createdAt}, ${ownerId}, ${madeBy})`)
}

interface Ownership {
  /**
   * The number of organisations that share the account's quotas or were made by it, also if somebody else owns them now, or if they were deleted
   * lately.
   */
  readonly organisations: number
  /** Whether the account was the first owner of an organisation and is a member of it, or was when it was deleted, also if it was restored since: it was not admitted by an invitation alone. */
  readonly isFirstOwner: boolean
  readonly isAnySuspended: boolean
}

/** Returns the number of organisations of an account, and whether it owns a suspended one. Locks the account, so that the count stays true. */
export async function lockOwnership(tx: Tx, accountId: AccountId): Promise<Ownership> {
  await tx.run(sql`select 1 from accounts where id = ${accountId} for no key update`)
  const row = await tx.one(
    z.object({ organisations: z.bigint(), isFirstOwner: z.boolean(), isAnySuspended: z.boolean() }),
    sql`
    select (
      select count(*) from (
        select id from organisations where quota_account_id = ${accountId} and ${isCounted(sql`organisations`)}
        union select id from organisations where made_by = ${accountId} and ${isCounted(sql`organisations`)}) as own
    ) as organisations, ${isFirstOwner(sql`${accountId}`)} as is_first_owner, exists (
      select from members join organisations on organisations.id = members.organisation_id
      where members.account_id = ${accountId} and members.role = 'owner' and members.accepted_at is not null
        and organisations.suspended_at is not null
    ) as is_any_suspended`,
  )
  return { ...row, organisations: Number(row.organisations) }
}

/** A condition: `Ownership.isFirstOwner` of the account. */
function isFirstOwner(accountId: Sql): Sql {
  // The first owner is a member from the same instant on; an invitation is always later.
  return sql`(exists (
      select from members as first join organisations as founded on founded.id = first.organisation_id
      where first.account_id = ${accountId} and first.created_at = founded.created_at
    ) or exists (select from organisations as founded where founded.founder_id = ${accountId}))`
}

/**
 * Makes the first owner the account whose quotas the organisation shares, if the present one is no owner any more; of `founders`, the first owner who is the
 * first owner of any organisation, and if none is, the present account stays. What the organisation uses counts for 31 days toward the former account
 * too. The caller has locked the organisation.
 */
export async function moveQuotaAccount(
  tx: Tx,
  organisationId: OrganisationId,
  among: 'all-owners' | 'founders',
): Promise<void> {
  const mayHaveQuotas = among === 'all-owners' ? sql`true` : isFirstOwner(sql`owners.account_id`)
  await tx.run(sql`
    with owners as (
      select account_id, sequence from members where organisation_id = ${organisationId} and role = 'owner' and accepted_at is not null
    ), next as (
      select account_id from owners where ${mayHaveQuotas} order by sequence limit 1
    ), moved as (
      select quota_account_id as account_id from organisations
      where id = ${organisationId} and not exists (select from owners where account_id = quota_account_id) and exists (select from next)
    ), former as (
      insert into former_quota_accounts (organisation_id, account_id)
      select ${organisationId}, account_id from moved where account_id is not null
      on conflict (account_id, organisation_id) do update set moved_at = excluded.moved_at
    )
    update organisations set quota_account_id = (select account_id from next)
    where id = ${organisationId} and exists (select from moved)`)
}

export function findOrganisation(db: Queryable, organisationId: OrganisationId): Promise<OrganisationRow | undefined> {
  return db.maybeOne(
    OrganisationRow,
    sql`select ${organisationColumns} from organisations where id = ${organisationId}`,
  )
}

/**
 * Locks the organisation until the transaction ends, so that changes of its members and its plan run one after another. Undefined for one that was
 * deleted.
 */
export function lockOrganisation(tx: Tx, organisationId: OrganisationId): Promise<OrganisationRow | undefined> {
  return tx.maybeOne(
    OrganisationRow,
    sql`select ${organisationColumns} from organisations where id = ${organisationId} and deleted_at is null for no key update`,
  )
}

export async function markRenamed(tx: Tx, organisationId: OrganisationId, name: string): Promise<void> {
  await tx.run(sql`update organisations set name = ${name} where id = ${organisationId}`)
}

export async function markPlan(tx: Tx, organisationId: OrganisationId, plan: PlanName): Promise<void> {
  await tx.run(sql`update organisations set plan = ${plan} where id = ${organisationId}`)
}

export type Suspension = Pick<OrganisationRow, 'suspendedAt' | 'suspensionReason'>

export async function markSuspended(
  tx: Tx,
  organisationId: OrganisationId,
  { suspendedAt, suspensionReason }: Suspension,
): Promise<void> {
  await tx.run(sql`
    update organisations set suspended_at = ${suspendedAt}, suspension_reason = ${suspensionReason} where id = ${organisationId}`)
}

export async function markResumed(tx: Tx, organisationId: OrganisationId): Promise<void> {
  await tx.run(sql`
    update organisations set suspended_at = null, suspension_reason = null where id = ${organisationId}`)
}

/** Returns every organisation, and every owner of an audit log without one, to check all logs. */
export async function listOrganisationIds(db: Queryable): Promise<OrganisationId[]> {
  const rows = await db.many(
    z.object({ id: id('org') }),
    sql`
    select id from organisations union select organisation_id from audit_heads where organisation_id <> ${operatorLog}
    union select organisation_id from audit_sequences where organisation_id <> ${operatorLog}
    union select organisation_id from audit_log where organisation_id <> ${operatorLog}
    order by 1`,
  )
  return rows.map((row) => row.id)
}

const ListedOrganisation = OrganisationRow.extend({
  ownerEmail: z.string().nullable(),
  validKeys: z.number(),
  deletedAt: z.date().nullable(),
  receivedAt: z.date().nullable(),
})

/**
 * Returns the newest organisations for the operator, with the first owner, the number of valid keys, and when a deleted one last received live money. `find` is an id or a part of a
 * name or of the owner's e-mail address.
 */
export function listOrganisations(
  db: Queryable,
  { limit, find, now }: { readonly limit: number; readonly find: string | undefined; readonly now: Date },
): Promise<z.output<typeof ListedOrganisation>[]> {
  return db.many(
    ListedOrganisation,
    sql`
    select organisations.id, organisations.name, organisations.type, organisations.plan, organisations.created_at,
      organisations.suspended_at, organisations.suspension_reason, organisations.deleted_at, owner.email as owner_email,
      (select count(*)::int from api_keys
        where organisation_id = organisations.id and revoked_at is null and coalesce(expires_at, 'infinity') > ${now}) as valid_keys,
      case when organisations.deleted_at is not null then (
        select max(deposit.created_at) from wallet_transactions as deposit
        where deposit.organisation_id = organisations.id and deposit.environment = 'live' and deposit.direction = 'in'
          and deposit.status <> 'withdrawn' and deposit.created_at > organisations.deleted_at) end as received_at
    from organisations left join lateral (
      select accounts.email from members join accounts on accounts.id = members.account_id
      where members.organisation_id = organisations.id and members.role = 'owner' and members.accepted_at is not null
      order by members.sequence limit 1
    ) owner on true
    where ${find ?? null}::text is null or organisations.id = ${find ?? null} or strpos(lower(organisations.name), lower(${find ?? null})) > 0
      or strpos(lower(owner.email), lower(${find ?? null})) > 0
    order by organisations.id desc limit ${limit}`,
  )
}

export interface NewAccount {
  readonly id: AccountId
  readonly email: string
  readonly name: string | null
  readonly acceptedAt: Date | null
  readonly createdAt: Date
}

/**
 * Returns the account of an e-mail address, and creates it if there is none. An account that was only invited becomes accepted if
 * the given one is; its other fields do not change.
 */
export async function upsertAccount(tx: Tx, account: NewAccount): Promise<AccountRow> {
  const { id, email, name, acceptedAt, createdAt } = account
  return tx.one(
    AccountRow,
    sql`
    insert into accounts (id, email, name, accepted_at, created_at) values (${id}, ${email}, ${name}, ${acceptedAt}, ${createdAt})
    on conflict (lower(email)) do update set
      accepted_at = coalesce(accounts.accepted_at, excluded.accepted_at), name = coalesce(accounts.name, excluded.name)
    returning id, email, name`,
  )
}

export function findAccount(db: Queryable, accountId: AccountId): Promise<AccountRow | undefined> {
  return db.maybeOne(AccountRow, sql`select id, email, name from accounts where id = ${accountId}`)
}

/** Returns the account that created this key. */
export function findKeyCreator(
  db: Queryable,
  organisationId: OrganisationId,
  apiKeyId: ApiKeyId,
): Promise<AccountRow | undefined> {
  return db.maybeOne(
    AccountRow,
    sql`
    select accounts.id, accounts.email, accounts.name from api_keys join accounts on accounts.id = api_keys.created_by
    where api_keys.organisation_id = ${organisationId} and api_keys.id = ${apiKeyId}`,
  )
}

const Belonging = OrganisationRow.omit({ plan: true, createdAt: true }).extend({ role: Role })

/** The organisations of an account, the latest first, or that one of them. */
export function listOrganisationsOf(
  db: Queryable,
  accountId: AccountId,
  only: OrganisationId | undefined,
): Promise<z.output<typeof Belonging>[]> {
  const isShown = only === undefined ? sql`true` : sql`organisations.id = ${only}`
  return db.many(
    Belonging,
    sql`
    select organisations.id, organisations.name, organisations.type, organisations.suspended_at, organisations.suspension_reason, members.role
    from members join organisations on organisations.id = members.organisation_id
    where members.account_id = ${accountId} and members.accepted_at is not null and ${isShown} order by members.sequence desc limit 500`,
  )
}

const Invited = Belonging.extend({ invitedAt: z.date() })

/**
 * The organisations that invited an account which has not accepted: the latest of each account that made them first, so that one with many organisations
 * hides no other's invitation.
 */
export function listInvitationsTo(db: Queryable, accountId: AccountId): Promise<z.output<typeof Invited>[]> {
  return db.many(
    Invited,
    sql`
    select organisations.id, organisations.name, organisations.type, organisations.suspended_at, organisations.suspension_reason, members.role,
      members.created_at as invited_at
    from members join organisations on organisations.id = members.organisation_id
    where members.account_id = ${accountId} and members.accepted_at is null
    order by row_number() over (
      partition by coalesce(organisations.quota_account_id, organisations.id) order by members.sequence desc), members.sequence desc limit 500`,
  )
}
