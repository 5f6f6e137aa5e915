import type { z } from 'zod'
import type { Person } from '../../platform/ctx.ts'
import type { Id } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { failOrganisation } from '../organisations/index.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { SignInSession } from './schema.ts'
import { deleteSession, listSessions } from './store.ts'

/** The sessions of the person who calls, newest first. */
export async function pageOfSessions(
  ctx: Pick<Ctx, 'clock' | 'db' | 'person'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<SignInSession>> {
  const person = requirePerson(ctx)
  const after = openCursor(query.cursor)
  const rows = await listSessions(ctx.db, person.accountId, { now: ctx.clock.now(), limit: query.limit, after })
  const page = pageOf(rows, query.limit, ({ id }) => id)
  const items = page.items.map(({ ipAddress, userAgent, ...session }) => ({
    ...session,
    ipAddress: ipAddress === '' ? null : ipAddress,
    userAgent: userAgent === '' ? null : userAgent,
    isCurrent: session.id === person.sessionId,
  }))
  return { ...page, items }
}

/**
 * Ends a session of the person who calls: its next request is 401, in every process. Returns, or throws 404 for one that has ended, when the witness
 * covers it.
 */
export async function endSession(ctx: Pick<Ctx, 'db' | 'person' | 'witness'>, sessionId: Id<'ssn'>): Promise<void> {
  const { accountId } = requirePerson(ctx)
  const wasOpen = await ctx.db.tx(async (tx) => {
    const isEnded = await deleteSession(tx, accountId, sessionId)
    tx.beforeReturn(isEnded ? ctx.witness.cover : ctx.witness.coverRepetition)
    return isEnded
  })
  if (!wasOpen) throw fail('session-not-found')
}

/** The person who calls; throws 403 for an API key. */
function requirePerson({ person }: Pick<Ctx, 'person'>): Person {
  if (person === undefined) throw failOrganisation('person-required')
  return person
}
