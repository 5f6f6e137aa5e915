import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import type { Account } from './store.ts'

/** Numbers of authorizations that may still be used: of an account, of the caller that had them signed in the organisations of a share owner, and of all their wallets. */
interface OpenNumbers {
  readonly address: number
  readonly caller: number
  readonly organisation: number
}

/**
 * Returns which of these numbers of authorizations on the account's network is exceeded; undefined if none is. `sharers` selects the ids of the
 * organisations that count together.
 */
export async function exceededByOpen(
  db: Queryable,
  { network, owner, signedBy, sharers }: Account & { readonly signedBy: string; readonly sharers: Sql },
  most: OpenNumbers,
): Promise<keyof OpenNumbers | undefined> {
  const open = sql`r.network = ${network.name} and r.authorization_nonce is not null and r.used_at is null and r.ended_at is null`
  const ofSharers = (own: Sql, limit: number): Sql => sql`
      select count(*) from (
        select from (${sharers}) as sharer cross join lateral (
          select from reservations r where r.organisation_id = sharer.id and ${own} and ${open} limit ${limit}
        ) as own limit ${limit}) as shared`
  const { exceeded } = await db.one(
    z.object({ exceeded: z.enum(['address', 'caller', 'organisation']).nullable() }),
    sql`
    select case when (
      select count(*) from (select from reservations r where r.owner = ${owner} and ${open} limit ${most.address + 1}) as own
    ) > ${most.address} then 'address' when (${ofSharers(sql`r.signed_by = ${signedBy}`, most.caller + 1)}
    ) > ${most.caller} then 'caller' when (${ofSharers(sql`r.reason = 'transfer'`, most.organisation + 1)}
    ) > ${most.organisation} then 'organisation' end as exceeded`,
  )
  return exceeded ?? undefined
}

/** Marks the authorizations of subjects as used, according to a block that may still be reorganized: their amounts stay reserved. */
export async function markAuthorizationsUsed(tx: Tx, subjectIds: readonly string[], now: Date): Promise<void> {
  if (subjectIds.length === 0) return
  await tx.run(sql`
    update reservations set used_at = ${now} where subject_id = any(${subjectIds}::text[]) and authorization_nonce is not null`)
}

/** Marks the authorization of a subject as unused again, because its block is gone. */
export async function markAuthorizationUnused(tx: Tx, subjectId: string): Promise<void> {
  await tx.run(sql`update reservations set used_at = null where subject_id = ${subjectId} and used_at is not null`)
}
