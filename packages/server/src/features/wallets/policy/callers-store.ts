import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { anyLength, sql, type Tx } from '../../../platform/db/db.ts'
import type { AccountId, ApiKeyId } from '../../../platform/ids.ts'
import type { Role } from '../../../platform/roles.ts'

const EndedRow = z.object({ id: z.string() })

/** Roles of people who may request movements, and of those who may change what may be requested. */
const rolesFor = { member: ['owner', 'admin', 'member'], admin: ['owner', 'admin'] } as const satisfies Partial<
  Record<Role, readonly Role[]>
>
export type LeastRole = keyof typeof rolesFor

/**
 * Returns those of these API keys and accounts of the tenant that may not request movements any more: keys that were revoked, and accounts without a
 * membership of at least that role in this environment. An expired key still may.
 */
export async function listEndedRequesters(
  tx: Tx,
  { organisationId, environment }: Tenant,
  requesters: readonly (ApiKeyId | AccountId)[],
  leastRole: LeastRole = 'member',
): Promise<ReadonlySet<string>> {
  const rows = await tx.many(
    EndedRow,
    sql`
    select given.id from unnest(${anyLength([...new Set(requesters)])}) as given (id)
    where not exists (select from api_keys where organisation_id = ${organisationId} and api_keys.id = given.id and revoked_at is null)
      and not exists (
        select from members where organisation_id = ${organisationId} and account_id = given.id and accepted_at is not null
          and role = any(${rolesFor[leastRole]}::text[]) and (is_live or ${environment} = 'test'))`,
  )
  return new Set(rows.map((row) => row.id))
}
