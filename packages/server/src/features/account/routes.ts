import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import type { Operation } from '../../platform/operation.ts'
import { roles } from '../../platform/roles.ts'
import { Instant } from '../../platform/wire.ts'
import { getUsage, Usage } from '../billing/index.ts'
import {
  acceptInvitation,
  callersAccount,
  declineInvitation,
  failOrganisation,
  listInvitationsTo,
  listOrganisationsOf,
} from '../organisations/index.ts'
import { type Ctx, type Deps, operation } from './ports.ts'

const Membership = z.strictObject({
  id: id('org'),
  name: z.string().describe('Name of the organisation.'),
  type: z.enum(['personal', 'team', 'enterprise']).describe('Type of the organisation.'),
  role: z.enum(roles).describe('Role of the account in it.'),
  suspendedAt: Instant.nullable().describe('When it was suspended; null if it is active.'),
  suspensionReason: z.string().nullable().describe('Why it was suspended; null if it is active.'),
})

/** The account of the caller; for a key, the account of its creator and the key's organisation. */
const Account = z.strictObject({
  id: id('acc'),
  email: z.string().describe('E-mail address of the account.'),
  name: z.string().nullable().describe('Name of the person; null if none is known.'),
  organisations: z
    .array(Membership)
    .describe('Organisations of the account, the latest first; for an API key only its own.'),
  invitations: z.array(Membership.extend({ invitedAt: Instant.describe('When the account was invited.') })).meta({
    description: 'Organisations that invited the account, which has not accepted; `id` names the invitation.',
  }),
})
type Account = z.input<typeof Account>

const InvitationParams = z.strictObject({ id: id('org') })

named({ Membership, Account })

const invitationNotFound = { 'invitation-not-found': failOrganisation.table['invitation-not-found'] }

export const accountOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'account.get',
    needs: { role: 'person', scope: 'read' },
    method: 'GET',
    path: '/account',
    summary: 'Get your account, its organisations and its invitations.',
    description: 'For an API key, its creator and its organisation.',
    output: Account,
    run: (ctx) => getAccount(ctx),
  }),
  operation({
    id: 'account.usage',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/account/usage',
    summary: 'Get the usage of the organisation and the limits of its plan.',
    description: 'As `GET /billing/usage`.',
    output: Usage,
    run: (ctx) => getUsage(ctx),
  }),
  operation({
    id: 'account.invitations.accept',
    needs: { role: 'person', scope: 'organisation' },
    method: 'POST',
    path: '/account/invitations/{id}/accept',
    summary: 'Accept an invitation to an organisation.',
    description: 'Only the invited person does this, and has the role of the invitation from then on.',
    params: InvitationParams,
    errors: invitationNotFound,
    run: (ctx, { params }) => acceptInvitation(ctx, params.id),
  }),
  operation({
    id: 'account.invitations.decline',
    needs: { role: 'person', scope: 'organisation' },
    method: 'POST',
    path: '/account/invitations/{id}/decline',
    summary: 'Decline an invitation to an organisation.',
    description: 'Only the invited person does this. They can be invited again.',
    params: InvitationParams,
    errors: invitationNotFound,
    run: (ctx, { params }) => declineInvitation(ctx, params.id),
  }),
]

/**
 * Returns the account of the person who calls, or the one that created the calling key. A key is often in the hands of others, so of the account's
 * organisations it shows its own alone. It shows the open invitations too, because a key may accept one.
 */
async function getAccount(ctx: Pick<Ctx, 'actor' | 'db' | 'tenant'>): Promise<Account> {
  const account = await callersAccount(ctx, ctx.db)
  const only = ctx.actor.kind === 'api-key' ? ctx.tenant.organisationId : undefined
  const [organisations, invitations] = [
    await listOrganisationsOf(ctx.db, account.id, only),
    await listInvitationsTo(ctx.db, account.id),
  ]
  return { ...account, organisations, invitations }
}
