import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { AccountId, OrganisationId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { Role } from './roles.ts'

export const MemberRow = z.object({
  sequence: z.bigint(),
  accountId: id('acc'),
  email: z.string(),
  role: Role,
  status: z.enum(['active', 'invited']),
  createdAt: z.date(),
})
export type MemberRow = z.output<typeof MemberRow>

const rows = sql`
  select members.sequence, members.account_id, accounts.email, members.role, members.created_at,
    case when accounts.accepted_at is null then 'invited' else 'active' end as status
  from members join accounts on accounts.id = members.account_id`

/** Makes the account a member; false when it is one already. */
export async function insertMember(
  tx: Tx,
  organisationId: OrganisationId,
  member: { readonly accountId: AccountId; readonly role: Role; readonly createdAt: Date },
): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into members (organisation_id, account_id, role, created_at)
    values (${organisationId}, ${member.accountId}, ${member.role}, ${member.createdAt}) on conflict do nothing`)
  return inserted === 1
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

/** Members, the latest to join first, one more than the limit. */
export function listMembers(
  db: Queryable,
  organisationId: OrganisationId,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<MemberRow[]> {
  return db.many(
    MemberRow,
    sql`${rows}
    where members.organisation_id = ${organisationId} and (${page.after ?? null}::bigint is null or members.sequence < ${page.after ?? null}::bigint)
    order by members.sequence desc limit ${page.limit + 1}`,
  )
}

/** How many owners there are; the caller holds the organisation, so that the answer stays true. */
export async function countOwners(tx: Tx, organisationId: OrganisationId): Promise<number> {
  const row = await tx.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from members where organisation_id = ${organisationId} and role = 'owner'`,
  )
  return Number(row.count)
}

/** The owner who joined first. */
export async function findFirstOwner(db: Queryable, organisationId: OrganisationId): Promise<MemberRow | undefined> {
  return db.maybeOne(
    MemberRow,
    sql`${rows} where members.organisation_id = ${organisationId} and members.role = 'owner' order by members.sequence limit 1`,
  )
}

export async function markRole(
  tx: Tx,
  organisationId: OrganisationId,
  accountId: AccountId,
  role: Role,
): Promise<void> {
  await tx.run(
    sql`update members set role = ${role} where organisation_id = ${organisationId} and account_id = ${accountId}`,
  )
}

export async function deleteMember(tx: Tx, organisationId: OrganisationId, accountId: AccountId): Promise<void> {
  await tx.run(sql`delete from members where organisation_id = ${organisationId} and account_id = ${accountId}`)
}
