import type { Ctx } from '../../platform/ctx.ts'
import { callersAccount, listOrganisationsOf } from '../organisations/index.ts'
import type { Account } from './schema.ts'

/** The account that made the calling key. */
export async function getAccount(ctx: Ctx): Promise<Account> {
  const account = await callersAccount(ctx, ctx.db)
  return { ...account, organisations: await listOrganisationsOf(ctx.db, account.id) }
}
