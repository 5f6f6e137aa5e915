import type { z } from 'zod'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type AccountId, newId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { type PageQuery, pageOf } from '../../platform/wire.ts'
import { auditIn } from './acting.ts'
import { fail } from './errors.ts'
import {
  countOwners,
  deleteMember,
  findMember,
  insertMember,
  listMembers,
  type MemberRow,
  markRole,
} from './member-store.ts'
import type { Role } from './roles.ts'
import type { Member, NewMember } from './schema.ts'
import { openSequenceCursor } from './sequence-cursor.ts'
import { type AccountRow, findAccount, lockOrganisation, upsertAccount } from './store.ts'

/** Adds a person by account or by e-mail address; an unknown address gets an account that waits for its first sign-in. */
export function addMember(ctx: Ctx, request: NewMember): Promise<Member> {
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    const account = await accountToAdd(ctx, tx, request)
    if (account === undefined) throw fail('account-not-found')
    const member = { accountId: account.id, role: request.role, createdAt: ctx.clock.now() }
    if (!(await insertMember(tx, organisationId, member))) throw fail('already-a-member')
    const details = { role: request.role }
    await auditIn(ctx, tx, organisationId, null, { action: 'organisations.members.add', target: account.id, details })
    const { role, createdAt } = member
    const payload = { accountId: account.id, email: account.email, role, invitedAt: createdAt.toISOString() }
    await ctx.publish(tx, 'member.invited', payload)
    return shown(await getMember(tx, ctx, account.id))
  })
}

function accountToAdd(ctx: Ctx, tx: Tx, { accountId, email }: NewMember): Promise<AccountRow | undefined> {
  if (accountId !== undefined) return findAccount(tx, accountId)
  if (email === undefined) throw new Error('a new member is named by account or by e-mail address')
  return upsertAccount(tx, { id: newId('acc', ctx), email, name: null, acceptedAt: null, createdAt: ctx.clock.now() })
}

export async function pageOfMembers(ctx: Ctx, query: z.output<typeof PageQuery>): Promise<Page<Member>> {
  const after = openSequenceCursor(query.cursor)
  const rows = await listMembers(ctx.db, ctx.tenant.organisationId, { limit: query.limit, after })
  const page = pageOf(rows, query.limit, (row) => row.sequence.toString())
  return { items: page.items.map(shown), next: page.next }
}

/** Gives a member another role. The organisation is held meanwhile, so that two owners cannot demote each other at once. */
export function changeRole(ctx: Ctx, accountId: AccountId, role: Role): Promise<Member> {
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    await lockOrganisation(tx, organisationId)
    const member = await getMember(tx, ctx, accountId)
    if (member.role === role) return shown(member)
    await refuseLastOwner(tx, ctx, member)
    await markRole(tx, organisationId, accountId, role)
    const details = { from: member.role, to: role }
    await auditIn(ctx, tx, organisationId, null, { action: 'organisations.members.update', target: accountId, details })
    return shown({ ...member, role })
  })
}

/**
 * Takes a person out of the organisation, which is held meanwhile, so that two removals cannot each see the other owner.
 * The keys that the person made belong to the organisation and stay; they are revoked on their own.
 */
export function removeMember(ctx: Ctx, accountId: AccountId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    await lockOrganisation(tx, organisationId)
    const member = await getMember(tx, ctx, accountId)
    await refuseLastOwner(tx, ctx, member)
    await deleteMember(tx, organisationId, accountId)
    const details = { role: member.role }
    await auditIn(ctx, tx, organisationId, null, { action: 'organisations.members.remove', target: accountId, details })
  })
}

async function refuseLastOwner(tx: Tx, ctx: Ctx, member: MemberRow): Promise<void> {
  if (member.role === 'owner' && (await countOwners(tx, ctx.tenant.organisationId)) === 1) throw fail('last-owner')
}

async function getMember(tx: Tx, ctx: Ctx, accountId: AccountId): Promise<MemberRow> {
  const member = await findMember(tx, ctx.tenant.organisationId, accountId)
  if (member === undefined) throw fail('member-not-found')
  return member
}

function shown({ accountId, email, role, status, createdAt }: MemberRow): Member {
  return { accountId, email, role, status, createdAt }
}
