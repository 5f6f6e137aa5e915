import type { Ctx } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { type AccountRow, findKeyCreator } from './store.ts'

/** The account behind the calling key: the one that made it. Keys that a key makes belong to that account as well. */
export async function callersAccount(ctx: Ctx, db: Queryable): Promise<AccountRow> {
  if (ctx.actor.kind !== 'api-key') throw new Error('only a call with an API key has an account behind it')
  const account = await findKeyCreator(db, ctx.tenant.organisationId, ctx.actor.apiKeyId)
  if (account === undefined) throw new Error('the calling key has no account')
  return account
}
