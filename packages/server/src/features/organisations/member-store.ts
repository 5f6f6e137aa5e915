import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type ListedRows, listRows } from '../../platform/db/page.ts'
import type { AccountId, ApiKeyId, OrganisationId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { Role } from './schema.ts'

export const MemberRow = z.object({
  sequence: z.bigint(),
  accountId: id('acc'),
  /** The id that the organisation sees in place of the account’s: until an invitation by address is accepted, an id of the invitation, which does not show since when the account exists. */
  shownId: id('acc'),
  /** Null where the account was invited by its id and has not accepted. */
  email: z.string().nullable(),
  role: Role,
  /** Whether the person works in the live environment too. */
  isLive: z.boolean(),
  status: z.enum(['active', 'invited']),
  createdAt: z.date(),
})
export type MemberRow = z.output<typeof MemberRow>

/** `MemberRow.shownId` of a row of `members`. */
export const shownId = sql`case when members.accepted_at is null then coalesce(members.invited_as, members.account_id) else members.account_id end`

const rows = sql`
  select members.sequence, members.account_id, ${shownId} as shown_id, members.role, members.is_live, members.created_at,
    case when members.accepted_at is null then members.invited_email else accounts.email end as email,
    case when members.accepted_at is null then 'invited' else 'active' end as status
  from members left join accounts on accounts.id = members.account_id`

export interface NewMemberRow {
  readonly accountId: AccountId
  readonly role: Role
  readonly isLive: boolean
  readonly createdAt: Date
  /** Null for an invitation. */
  readonly acceptedAt: Date | null
  /** The invited email address; null if the member was not invited by address. */
  readonly invitedEmail: string | null
  /** The id that the organisation sees in place of the account's until the invitation is accepted; null for the account's own. */
  readonly invitedAs: AccountId | null
  /** The API key that made the invitation; null if a person made it. */
  readonly invitedByKey: ApiKeyId | null
  /** The account that made the invitation, or that created the key that did; null for the founder. */
  readonly invitedBy: AccountId | null
}

/** Adds the account as a member; false if it is one already. */
export async function insertMember(tx: Tx, organisationId: OrganisationId, member: NewMemberRow): Promise<boolean> {
  const { accountId, role, isLive, createdAt, acceptedAt, invitedEmail, invitedAs, invitedByKey, invitedBy } = member
  const inserted = await tx.run(sql`
    insert into members (organisation_id, account_id, role, is_live, created_at, accepted_at, invited_email, invited_as, invited_by_key, invited_by)
    values (${organisationId}, ${accountId}, ${role}, ${isLive}, ${createdAt}, ${acceptedAt}, ${invitedEmail}, ${invitedAs}, ${invitedByKey}, ${invitedBy})
    on conflict do nothing`)
  return inserted === 1
}

/** Counts the invitations of an organisation that nobody has answered; the caller has locked it, so that the count stays true. */
export async function countInvitations(tx: Tx, organisationId: OrganisationId): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from members where organisation_id = ${organisationId} and accepted_at is null`,
  )
  return Number(count)
}

export function findMember(
  db: Queryable,
  organisationId: OrganisationId,
  accountId: AccountId,
): Promise<MemberRow | undefined> {
  return db.maybeOne(
    MemberRow,
    sql`${rows} where members.organisation_id = ${organisationId} and members.account_id = ${accountId}`,
  )
}

/** Returns the member whom the organisation knows by this id: the one that it sees, or that of the accepted invitation. */
export function findKnownMember(
  db: Queryable,
  organisationId: OrganisationId,
  knownAs: AccountId,
): Promise<MemberRow | undefined> {
  return db.maybeOne(
    MemberRow,
    sql`${rows} where members.organisation_id = ${organisationId} and ${knownAs} in (${shownId}, members.invited_as)`,
  )
}

/** Returns members, the latest to join first, one more than the limit. */
export function listMembers(
  db: Queryable,
  organisationId: OrganisationId,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<MemberRow>> {
  return listRows(
    db,
    MemberRow,
    page.limit,
    sql`${rows}
    where members.organisation_id = ${organisationId} and ${page.after === undefined ? sql`true` : sql`members.sequence < ${page.after}::bigint`}
    order by members.sequence desc`,
  )
}

/** Counts the owners; the caller has locked the organisation, so that the count stays true. */
export async function countOwners(tx: Tx, organisationId: OrganisationId): Promise<number> {
  const row = await tx.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from members where organisation_id = ${organisationId} and role = 'owner' and accepted_at is not null`,
  )
  return Number(row.count)
}

/** Returns the owner who joined first. */
export async function findFirstOwner(db: Queryable, organisationId: OrganisationId): Promise<MemberRow | undefined> {
  return db.maybeOne(
    MemberRow,
    sql`${rows} where members.organisation_id = ${organisationId} and members.role = 'owner' and members.accepted_at is not null order by members.sequence limit 1`,
  )
}

export async function markRole(
  tx: Tx,
  organisationId: OrganisationId,
  { accountId, role, isLive, at }: Pick<NewMemberRow, 'accountId' | 'role' | 'isLive'> & { readonly at: Date },
): Promise<void> {
  await tx.run(sql`
    update members set role_since = case when role = ${role} then role_since else ${at} end, role = ${role}, is_live = ${isLive}
    where organisation_id = ${organisationId} and account_id = ${accountId}`)
}

export async function deleteMember(tx: Tx, organisationId: OrganisationId, accountId: AccountId): Promise<void> {
  await tx.run(sql`delete from members where organisation_id = ${organisationId} and account_id = ${accountId}`)
}

const AcceptedRow = z.object({ role: Role, invitedAs: id('acc').nullable() })

/** Accepts an invitation, and returns its role and the id that it had in place of the account's; undefined where the account has none to this organisation. Accepting it again changes nothing. */
export async function markAccepted(
  tx: Tx,
  organisationId: OrganisationId,
  accountId: AccountId,
  acceptedAt: Date,
): Promise<z.output<typeof AcceptedRow> | undefined> {
  return tx.maybeOne(
    AcceptedRow,
    sql`
    update members set accepted_at = ${acceptedAt}
    where organisation_id = ${organisationId} and account_id = ${accountId} and accepted_at is null
    returning role, invited_as`,
  )
}

const Invited = z.object({ shownId: id('acc') })

/** Removes an invitation of the account, and returns `MemberRow.shownId`; undefined where the account has none to this organisation. */
export async function deleteInvitation(
  tx: Tx,
  organisationId: OrganisationId,
  accountId: AccountId,
): Promise<AccountId | undefined> {
  const deleted = await tx.maybeOne(
    Invited,
    sql`
    delete from members where organisation_id = ${organisationId} and account_id = ${accountId} and accepted_at is null
    returning ${shownId} as shown_id`,
  )
  return deleted?.shownId
}

/** Invitations that these keys made, or those to these roles that an account or one of its keys made, if it might invite. */
export type InvitedBy =
  | { readonly apiKeyIds: readonly ApiKeyId[] }
  | { readonly accountId: AccountId; readonly mayInvite: boolean; readonly roles: readonly Role[] }

/**
 * Removes those of the invitations that nobody has accepted; returns what the organisation saw as their accounts' ids. An invitation from before accounts were recorded may
 * be of any owner or admin.
 */
export async function deleteInvitationsBy(tx: Tx, organisationId: OrganisationId, by: InvitedBy): Promise<AccountId[]> {
  const isBy =
    'apiKeyIds' in by
      ? sql`invited_by_key = any(${by.apiKeyIds}::text[])`
      : sql`(invited_by = ${by.accountId} or (invited_by is null and ${by.mayInvite}))
          and role = any(${by.roles}::text[])`
  const rows = await tx.many(
    Invited,
    sql`delete from members where organisation_id = ${organisationId} and accepted_at is null and ${isBy} returning ${shownId} as shown_id`,
  )
  return rows.map((row) => row.shownId)
}
