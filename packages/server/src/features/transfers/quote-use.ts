import type { Tx } from '../../platform/db/db.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import { deleteQuotes } from './quote-store.ts'
import type { NewTransfer } from './schema.ts'

/**
 * Uses up the quotes of transfers in the transaction that stores them. Returns those that must not be stored, with the reason: of two
 * transfers with one quote the second finds none.
 */
export async function takeQuotes<I>(
  ctx: Ctx,
  tx: Tx,
  made: readonly { readonly intent: I; readonly request: NewTransfer }[],
): Promise<ReadonlyMap<I, Error>> {
  const refused = new Map<I, Error>()
  const users = made.flatMap(({ intent, request: { quoteId } }) => (quoteId === undefined ? [] : [{ intent, quoteId }]))
  if (users.length === 0) return refused
  const taken = await deleteQuotes(tx, ctx.tenant, [...new Set(users.map(({ quoteId }) => quoteId))])
  const open = new Map(taken.map(({ id, expiresAt }) => [id, expiresAt]))
  for (const { intent, quoteId } of users) {
    const expiresAt = open.get(quoteId)
    if (expiresAt === undefined) refused.set(intent, fail('quote-not-found'))
    else if (expiresAt <= ctx.clock.now()) refused.set(intent, fail('quote-expired'))
    open.delete(quoteId)
  }
  return refused
}
