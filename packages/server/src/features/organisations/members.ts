import type { z } from 'zod'
import { requireFresh } from '../../platform/access.ts'
import type { Auditing } from '../../platform/audit.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { type AccountId, newId, type OrganisationId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { roles } from '../../platform/roles.ts'
import { openNumberCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { refuseEndedAccount } from '../callers/index.ts'
import {
  type Acting,
  auditIn,
  callersAccount,
  endInvitations,
  limitsOf,
  lockAsCaller,
  refuseChanged,
} from './api-keys.ts'
import { fail } from './errors.ts'
import {
  countInvitations,
  countOwners,
  deleteInvitation,
  deleteMember,
  findKnownMember,
  insertMember,
  listMembers,
  type MemberRow,
  markAccepted,
  markRole,
} from './member-store.ts'
import type { Ctx } from './ports.ts'
import type { Member, NewMember, Role } from './schema.ts'
import { lockOrganisation, moveQuotaAccount, upsertAccount } from './store.ts'

/** Most open invitations of an organisation: each lets its address sign in, also where nobody else may sign up. */
const invitationsMax = 100

/**
 * Invites a person by account or by e-mail address. The response does not depend on whether the account exists, or since when: an invitation by address has
 * an id of its own until it is accepted. An unknown address gets an account that waits for its first sign-in. The person is a member from the moment that they accept.
 */
export function addMember(ctx: Ctx, request: NewMember): Promise<Member> {
  refuseRoles(ctx, [request.role])
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    const { role, email = null } = request
    await lockAsCaller(ctx, tx)
    const { id: invitedBy } = await callersAccount(ctx, tx)
    await refuseWider(ctx, tx, { role })
    if ((await countInvitations(tx, organisationId)) >= invitationsMax) throw fail('invitation-limit-reached')
    const accountId = await accountToInvite(ctx, tx, request)
    const isLive = !isTestKey(ctx)
    const invitedByKey = ctx.actor.kind === 'api-key' ? ctx.actor.apiKeyId : null
    const invitedAs = email === null ? null : newId('acc', ctx)
    const shownAs = invitedAs ?? accountId
    const invitation = { acceptedAt: null, invitedEmail: email, invitedAs, invitedByKey, invitedBy }
    const member = { accountId, role, isLive, createdAt: ctx.clock.now(), ...invitation }
    if (!(await insertMember(tx, organisationId, member))) throw fail('already-a-member')
    const details = { role }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.members.add', target: shownAs, details },
    )
    const payload = { accountId: shownAs, email, role, invitedAt: member.createdAt.toISOString() }
    await ctx.publish(tx, 'member.invited', payload)
    return shown(await getMember(tx, ctx.tenant.organisationId, shownAs))
  })
}

async function accountToInvite(
  ctx: Pick<Ctx, 'clock' | 'random'>,
  tx: Tx,
  { accountId, email }: NewMember,
): Promise<AccountId> {
  if (accountId !== undefined) return accountId
  if (email === undefined) throw new Error('a new member is named by account or by e-mail address')
  const account = { id: newId('acc', ctx), email, name: null, acceptedAt: null, createdAt: ctx.clock.now() }
  return (await upsertAccount(tx, account)).id
}

/**
 * Refuses what a caller may not do with these roles: API keys neither grant nor remove `owner` and `admin`, and of people only owners
 * change owners, with fresh authentication.
 */
function refuseRoles(
  { actor, person, clock }: Pick<Ctx, 'actor' | 'clock' | 'person'>,
  involved: readonly Role[],
): void {
  if (actor.kind === 'api-key' && involved.some((role) => role === 'owner' || role === 'admin'))
    throw failPlatform('role-not-allowed')
  if (person === undefined || !involved.includes('owner')) return
  if (person.role !== 'owner') throw failPlatform('role-not-allowed')
  requireFresh({ person, clock })
}

/** Whether a test key makes the call: people whom it invites or gives a role work in the test environment only. */
function isTestKey({ actor, tenant }: Pick<Ctx, 'actor' | 'tenant'>): boolean {
  return actor.kind === 'api-key' && tenant.environment === 'test'
}

/** Refuses a test key that would change what a person may do in the live environment. */
function refuseTestKey(ctx: Pick<Ctx, 'actor' | 'tenant'>, { isLive }: MemberRow): void {
  if (isLive && isTestKey(ctx))
    throw failPlatform('role-not-allowed', {
      detail: 'A test key cannot change a member who works in the live environment.',
    })
}

/**
 * Refuses a caller who would give a person more than the caller may do: a key with limited scopes may only invite viewers, and only if it has
 * `read`; a key with an expiry may invite nobody, because a membership does not expire. A person needs fresh authentication for more than viewers,
 * because the new member could sign in and then do what needs it.
 */
async function refuseWider(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'person' | 'tenant'>,
  tx: Tx,
  { role, known }: { readonly role: Role; readonly known?: MemberRow },
): Promise<void> {
  const isRaised = known === undefined || roles.indexOf(role) < roles.indexOf(known.role)
  const getsLive = !(known?.isLive ?? false) && !isTestKey(ctx)
  if ((isRaised || getsLive) && role !== 'viewer') requireFresh(ctx)
  if (ctx.actor.kind !== 'api-key' || !isRaised) return
  const { scopes, expiresAt } = await limitsOf(ctx, tx, {})
  if (expiresAt !== null)
    throw failPlatform('role-not-allowed', {
      detail: 'An API key with an expiry cannot add members or raise roles, because a membership does not expire.',
    })
  if (scopes !== null && !(role === 'viewer' && scopes.includes('read')))
    throw failPlatform('role-not-allowed', {
      detail: 'An API key with limited scopes can only invite viewers, and only if it has the scope read.',
    })
}

export async function pageOfMembers(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<Member>> {
  const after = openNumberCursor(query.cursor)
  const rows = await listMembers(ctx.db, ctx.tenant.organisationId, { limit: query.limit, after })
  const page = pageOf(rows, query.limit, (row) => row.sequence.toString())
  return { ...page, items: page.items.map(shown) }
}

/**
 * Changes a member's role. The organisation is locked meanwhile, so that two owners cannot demote each other at once. Invitations that the person made
 * to a higher role end.
 */
export function changeRole(
  ctx: Auditing & Pick<Ctx, 'db' | 'isSignUpOpen' | 'person' | 'tenant' | 'witness'>,
  accountId: AccountId,
  role: Role,
): Promise<Member> {
  const { organisationId } = ctx.tenant
  const change = { organisationId, accountId, role, isLive: !isTestKey(ctx), movesQuotasTo: withQuotas(ctx) }
  return setRole(ctx, change, async (tx, known) => {
    await refuseChanged(ctx, tx)
    refuseRoles(ctx, [known.role, role])
    refuseTestKey(ctx, known)
    return refuseWider(ctx, tx, { role, known })
  })
}

/**
 * Changes a member's role as the operator, who may make and remove owners, but not the last one. Where no owner has free quotas of its own, the first owner
 * gets some.
 */
export function setRoleAsOperator(
  ctx: Acting,
  organisationId: OrganisationId,
  member: { readonly accountId: AccountId; readonly role: Role },
): Promise<Member> {
  return setRole(ctx, { organisationId, ...member, isLive: true, movesQuotasTo: 'all-owners' }, async () => undefined)
}

interface RoleChange {
  readonly organisationId: OrganisationId
  readonly accountId: AccountId
  readonly role: Role
  /** Whether the member gets access to the live environment. */
  readonly isLive: boolean
  readonly movesQuotasTo: 'all-owners' | 'founders'
}

/** The owners with free quotas of their own. With sign-up closed an account that only an invitation admitted has none: a founder could invite any number of them. */
const withQuotas = ({ isSignUpOpen }: Pick<Ctx, 'isSignUpOpen'>): RoleChange['movesQuotasTo'] =>
  isSignUpOpen ? 'all-owners' : 'founders'

function setRole(
  ctx: Acting,
  { organisationId, accountId, role, isLive: givesLive, movesQuotasTo }: RoleChange,
  refuse: (tx: Tx, member: MemberRow) => Promise<void>,
): Promise<Member> {
  return ctx.db.tx(async (tx) => {
    if ((await lockOrganisation(tx, organisationId)) === undefined) throw fail('organisation-not-found')
    const member = await getMember(tx, organisationId, accountId)
    await refuse(tx, member)
    const isLive = member.isLive || givesLive
    tx.beforeReturn(ctx.witness.cover)
    if (member.role === role && member.isLive === isLive) {
      await moveQuotaAccount(tx, organisationId, movesQuotasTo)
      return shown(member)
    }
    if (member.role !== role) await refuseLastOwner(tx, organisationId, member)
    await markRole(tx, organisationId, { accountId: member.accountId, role, isLive, at: ctx.clock.now() })
    const isLower = roles.indexOf(role) > roles.indexOf(member.role)
    const ended = {
      accountId: member.accountId,
      mayInvite: isLower && mayInvite(member),
      roles: roles.slice(0, roles.indexOf(role)),
    }
    await endInvitations(ctx, tx, organisationId, ended)
    await moveQuotaAccount(tx, organisationId, movesQuotasTo)
    const details = { from: member.role, to: role, isLive }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.members.update', target: member.shownId, details },
    )
    return shown({ ...member, role, isLive })
  })
}

/**
 * Removes a person from the organisation, which is locked meanwhile, so that two removals cannot each count on the other owner.
 * Invitations that the person made, also by a key, and that nobody has accepted end. The keys that the person created belong to the organisation and
 * stay; they are revoked separately.
 */
export async function removeMember(
  ctx: Auditing & Pick<Ctx, 'db' | 'isSignUpOpen' | 'person' | 'tenant' | 'witness'>,
  accountId: AccountId,
): Promise<void> {
  const wasMember = await ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    await lockAsCaller(ctx, tx)
    const member = await findKnownMember(tx, organisationId, accountId)
    tx.beforeReturn(member === undefined ? ctx.witness.coverRepetition : ctx.witness.cover)
    if (member === undefined) return false
    refuseRoles(ctx, [member.role])
    refuseTestKey(ctx, member)
    await refuseLastOwner(tx, organisationId, member)
    await deleteMember(tx, organisationId, member.accountId)
    await endInvitations(ctx, tx, organisationId, { accountId: member.accountId, mayInvite: mayInvite(member), roles })
    await moveQuotaAccount(tx, organisationId, withQuotas(ctx))
    const details = { role: member.role }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.members.remove', target: member.shownId, details },
    )
    return true
  })
  if (!wasMember) throw fail('member-not-found')
}

const mayInvite = ({ role, status }: MemberRow): boolean =>
  status === 'active' && (role === 'owner' || role === 'admin')

async function refuseLastOwner(tx: Tx, organisationId: OrganisationId, member: MemberRow): Promise<void> {
  if (member.role === 'owner' && member.status === 'active' && (await countOwners(tx, organisationId)) === 1)
    throw fail('last-owner')
}

async function getMember(tx: Tx, organisationId: OrganisationId, accountId: AccountId): Promise<MemberRow> {
  const member = await findKnownMember(tx, organisationId, accountId)
  if (member === undefined) throw fail('member-not-found')
  return member
}

function shown({ shownId: accountId, email, role, status, isLive, createdAt }: MemberRow): Member {
  return { accountId, email, role, status, environments: isLive ? ['test', 'live'] : ['test'], createdAt }
}

/**
 * Makes the calling account a member of an organisation that invited it. An invitation that was accepted is not there any more. An API key accepts no
 * invitation to be an owner or admin: whoever has a key of another organisation would decide for its account.
 */
export function acceptInvitation(
  ctx: Auditing & Pick<Ctx, 'db' | 'person' | 'tenant' | 'witness'>,
  organisationId: OrganisationId,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { id } = await callersAccount(ctx, tx)
    const accepted = await markAccepted(tx, organisationId, id, ctx.clock.now())
    if (accepted === undefined) throw fail('invitation-not-found')
    const { role, invitedAs } = accepted
    await refuseEndedAccount(ctx, tx)
    if (ctx.actor.kind === 'api-key' && (role === 'owner' || role === 'admin'))
      throw failPlatform('role-not-allowed', {
        detail:
          'An API key cannot accept an invitation to be an owner or admin: the person accepts it in the dashboard.',
      })
    const entry = { action: 'account.invitations.accept', target: id, details: invitedAs === null ? {} : { invitedAs } }
    await auditIn(ctx, tx, { organisationId, environment: null }, entry)
  })
}

/** Removes an invitation of the calling account. */
export function declineInvitation(
  ctx: Auditing & Pick<Ctx, 'db' | 'tenant' | 'witness'>,
  organisationId: OrganisationId,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { id } = await callersAccount(ctx, tx)
    const target = await deleteInvitation(tx, organisationId, id)
    if (target === undefined) throw fail('invitation-not-found')
    // Nobody there learns more of a person who declines than they knew.
    const declining = target === id ? ctx : { ...ctx, actor: { kind: 'person', accountId: target } as const }
    await auditIn(
      declining,
      tx,
      { organisationId, environment: null },
      { action: 'account.invitations.decline', target },
    )
  })
}
