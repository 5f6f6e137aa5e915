import type { Operation } from '../../platform/operation.ts'
import { getUsage, Usage } from '../billing/index.ts'
import { acceptInvitation, declineInvitation, failOrganisation } from '../organisations/index.ts'
import { getAccount } from './account.ts'
import { type Deps, operation } from './ports.ts'
import { Account, InvitationParams } from './schema.ts'

const invitationNotFound = { 'invitation-not-found': failOrganisation.table['invitation-not-found'] }

export const accountOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'account.get',
    needs: { role: 'person', scope: 'read' },
    method: 'GET',
    path: '/account',
    summary: 'Get your account, its organisations and its invitations.',
    description: 'For an API key, the account that created it.',
    output: Account,
    run: (ctx) => getAccount(ctx),
  }),
  operation({
    id: 'account.usage',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/account/usage',
    summary: 'Get what is used and what the plan grants; the same as billing usage.',
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
