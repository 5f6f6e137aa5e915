import { callersAccount, listInvitationsTo, listOrganisationsOf } from '../organisations/index.ts'
import type { Ctx } from './ports.ts'
import type { Account } from './schema.ts'

/** Returns the account of the person who calls, or the one that created the calling key. */
export async function getAccount(ctx: Ctx): Promise<Account> {
  const account = await callersAccount(ctx, ctx.db)
  const [organisations, invitations] = [
    await listOrganisationsOf(ctx.db, account.id),
    await listInvitationsTo(ctx.db, account.id),
  ]
  return { ...account, organisations, invitations }
}
