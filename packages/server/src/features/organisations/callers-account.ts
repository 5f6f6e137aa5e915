import type { Queryable } from '../../platform/db/db.ts'
import type { Ctx } from './ports.ts'
import { type AccountRow, findAccount, findKeyCreator } from './store.ts'

/** Returns the account behind the call: the person, or the account that created the API key. Keys that a key creates belong to that account too. */
export async function callersAccount(ctx: Ctx, db: Queryable): Promise<AccountRow> {
  const account = await findCaller(ctx, db)
  if (account === undefined) throw new Error('the caller has no account')
  return account
}

function findCaller({ actor, tenant }: Ctx, db: Queryable): Promise<AccountRow | undefined> {
  if (actor.kind === 'person') return findAccount(db, actor.accountId)
  if (actor.kind === 'api-key') return findKeyCreator(db, tenant.organisationId, actor.apiKeyId)
  throw new Error('only a person or an API key has an account')
}
