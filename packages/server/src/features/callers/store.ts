import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { anyLength, sql, type Tx } from '../../platform/db/db.ts'
import { type AccountId, type ApiKeyId, type Id, id } from '../../platform/ids.ts'
import type { Role } from '../../platform/roles.ts'

/** An API key or an account, and for a call of a person the session. */
export interface Requester {
  readonly id: ApiKeyId | AccountId
  readonly sessionId: Id<'ssn'> | null
}

const EndedRow = z.object({ id: z.string(), sessionId: id('ssn').nullable(), isSignedOut: z.boolean() })

/** The roles of people who have at least this one. */
const rolesFor = {
  viewer: ['owner', 'admin', 'member', 'viewer'],
  member: ['owner', 'admin', 'member'],
  admin: ['owner', 'admin'],
} as const satisfies Partial<Record<Role, readonly Role[]>>
export type LeastRole = keyof typeof rolesFor

/**
 * Returns those of these callers of the tenant that have lost their access: keys that were revoked, people who signed out of the
 * session, and accounts without a membership of at least that role in this environment. An expired key has not: it was valid when its call began.
 */
export function listEndedRequesters(
  tx: Tx,
  { organisationId, environment }: Tenant,
  requesters: readonly Requester[],
  leastRole: LeastRole = 'member',
): Promise<z.output<typeof EndedRow>[]> {
  const [ids, sessions] = [requesters.map((one) => one.id), requesters.map((one) => one.sessionId)]
  return tx.many(
    EndedRow,
    sql`
    select given.id, given.session_id, given.is_signed_out from (
      select id, session_id, session_id is not null and not exists (select from auth."session" where "id" = session_id) as is_signed_out
      from unnest(${anyLength(ids)}, ${anyLength(sessions)}) as requester (id, session_id)) as given
    where given.is_signed_out or (
      not exists (select from api_keys where organisation_id = ${organisationId} and api_keys.id = given.id and revoked_at is null)
      and not exists (
        select from members where organisation_id = ${organisationId} and account_id = given.id and accepted_at is not null
          and role = any(${rolesFor[leastRole]}::text[]) and (is_live or ${environment} = 'test')))`,
  )
}

/** Whether the person has signed out of the session, or it was ended. */
export async function isSignedOut(tx: Tx, sessionId: Id<'ssn'>): Promise<boolean> {
  const { isOut } = await tx.one(
    z.object({ isOut: z.boolean() }),
    sql`select not exists (select from auth."session" where "id" = ${sessionId}) as is_out`,
  )
  return isOut
}
