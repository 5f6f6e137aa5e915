import type { OrganisationId } from '../../platform/ids.ts'
import { auditIn } from './acting.ts'
import { callersAccount } from './callers-account.ts'
import { fail } from './errors.ts'
import { deleteInvitation, markAccepted } from './member-store.ts'
import type { Ctx } from './ports.ts'

/** Makes the calling account a member of an organisation that invited it. An invitation that was accepted is not there any more. */
export function acceptInvitation(ctx: Ctx, organisationId: OrganisationId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { id } = await callersAccount(ctx, tx)
    if (!(await markAccepted(tx, organisationId, id, ctx.clock.now()))) throw fail('invitation-not-found')
    await auditIn(ctx, tx, organisationId, null, { action: 'account.invitations.accept', target: id })
  })
}

/** Removes an invitation of the calling account. */
export function declineInvitation(ctx: Ctx, organisationId: OrganisationId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const { id } = await callersAccount(ctx, tx)
    if (!(await deleteInvitation(tx, organisationId, id))) throw fail('invitation-not-found')
    await auditIn(ctx, tx, organisationId, null, { action: 'account.invitations.decline', target: id })
  })
}
