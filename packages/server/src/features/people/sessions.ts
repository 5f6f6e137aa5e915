import type { Person } from '../../platform/ctx.ts'
import type { Id } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { failOrganisation } from '../organisations/index.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { SignInSession } from './schema.ts'
import { deleteSession, listSessions } from './store.ts'

/** The sessions of the person who calls, newest first. */
export async function pageOfSessions(ctx: Ctx): Promise<Page<SignInSession>> {
  const person = requirePerson(ctx)
  const sessions = await listSessions(ctx.db, person.accountId, ctx.clock.now())
  const items = sessions.map(({ ipAddress, userAgent, ...session }) => ({
    ...session,
    ipAddress: ipAddress === '' ? null : ipAddress,
    userAgent: userAgent === '' ? null : userAgent,
    isCurrent: session.id === person.sessionId,
  }))
  return { items, next: undefined }
}

/** Ends a session of the person who calls: its next request is 401, in every process. */
export function endSession(ctx: Ctx, sessionId: Id<'ssn'>): Promise<void> {
  const { accountId } = requirePerson(ctx)
  return ctx.db.tx(async (tx) => {
    if (!(await deleteSession(tx, accountId, sessionId))) throw fail('session-not-found')
  })
}

/** The person who calls; throws 403 for an API key. */
function requirePerson({ person }: Pick<Ctx, 'person'>): Person {
  if (person === undefined) throw failOrganisation('person-required')
  return person
}
