import { z } from 'zod'
import { batchByTenant, batchByTx } from '../db/batch.ts'
import { sql, type Tx } from '../db/db.ts'
import type { Tenant } from '../tenant.ts'

/* Concurrent requests of a tenant claim their Idempotency-Keys by one statement, and store their responses by one. */

/** Most keys of one statement, and most statements of a tenant at once: one may wait for a request that commits one of its keys. */
const limits = { itemsMax: 128, batchesMax: 4 }

interface NewLease {
  readonly key: string
  readonly fingerprint: Uint8Array
  readonly actorId: string
  readonly claim: string
  readonly now: Date
  readonly until: Date
}

const ClaimRow = z.object({ claim: z.string() })

/** Claims a key that is not in use, with a lease. Returns whether it did. */
export const claimUnused = batchByTenant<NewLease, boolean>(
  limits,
  async (db, { organisationId, environment }, leases) => {
    const each = <T>(read: (lease: NewLease) => T): T[] => leases.map(read)
    // In the order of keys, so that two statements with the same keys do not wait for each other. Keys that exist are left out first: a conflict would
    // wait for a transaction that updates its row, such as one that ties the key.
    const statement = sql`
      insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, running_until, claim, created_at)
      select ${organisationId}, ${environment}, key, fingerprint, api_key_id, 'running', running_until, claim, created_at
      from unnest(
        ${each(({ key }) => key)}::text[], ${each(({ fingerprint }) => fingerprint)}::bytea[], ${each(({ actorId }) => actorId)}::text[],
        ${each(({ until }) => until.toISOString())}::timestamptz[], ${each(({ claim }) => claim)}::text[], ${each(({ now }) => now.toISOString())}::timestamptz[]
      ) as given (key, fingerprint, api_key_id, running_until, claim, created_at)
      where not exists (
        select from idempotency_keys as known
        where known.organisation_id = ${organisationId} and known.environment = ${environment} and known.key = given.key offset 0)
      order by key collate "C"
      on conflict (organisation_id, environment, key) do nothing
      returning claim`
    const rows = await db.tx((tx) => tx.many(ClaimRow, statement), { readsByKeys: true })
    const claimed = new Set(rows.map(({ claim }) => claim))
    return leases.map(({ claim }) => claimed.has(claim))
  },
)

interface EndedLease {
  readonly key: string
  readonly claim: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Sealed. */
  readonly body: Uint8Array
  /** The sealed fingerprint of a secret request; null leaves the fingerprint as it is. */
  readonly fingerprint: Uint8Array | null
  readonly isSecret: boolean
}

/** Stores a response under a key that the claim still has. Returns whether it did. */
export const storeEnded = batchByTenant<EndedLease, boolean>(
  limits,
  async (db, { organisationId, environment }, ended) => {
    const each = <T>(read: (lease: EndedLease) => T): T[] => ended.map(read)
    const statement = sql`
      update idempotency_keys k set state = 'done', status = given.status, headers = given.headers, sealed_body = given.body,
        sealed = given.sealed, fingerprint = coalesce(given.fingerprint, k.fingerprint)
      from unnest(
        ${each(({ key }) => key)}::text[], ${each(({ claim }) => claim)}::text[], ${each(({ status }) => status)}::int[],
        ${each(({ headers }) => JSON.stringify(headers))}::jsonb[], ${each(({ body }) => body)}::bytea[],
        ${each(({ isSecret }) => isSecret)}::boolean[], ${each(({ fingerprint }) => fingerprint)}::bytea[]
      ) as given (key, claim, status, headers, body, sealed, fingerprint)
      where k.organisation_id = ${organisationId} and k.environment = ${environment} and k.key = given.key and k.claim = given.claim
      returning k.claim`
    const rows = await db.tx((tx) => tx.many(ClaimRow, statement), { readsByKeys: true })
    const stored = new Set(rows.map(({ claim }) => claim))
    return ended.map(({ claim }) => stored.has(claim))
  },
)

interface Tie {
  readonly tenant: Tenant
  readonly key: string
  readonly claim: string
  readonly resourceId: string
}

/**
 * Ties a key to a resource in the resource's transaction, if the claim still has the key. Returns whether it did. A transaction makes all ties
 * that it requests at once by one statement.
 */
export const tie = batchByTx<Tie, boolean>(async (tx, ties) => {
  const [first] = ties
  const tied = first !== undefined && ties.length === 1 ? await tieOne(tx, first) : await tieAll(tx, ties)
  return ties.map(({ claim }) => tied.has(claim))
})

/** As `tie`, for a resource that exists already: concurrent requests of a tenant share a transaction. */
export const tieAlone = batchByTenant<Tie, boolean>(limits, async (db, _, ties) => {
  const tied = await db.tx((tx) => tieAll(tx, ties), { readsByKeys: true })
  return ties.map(({ claim }) => tied.has(claim))
})

async function tieAll(tx: Tx, ties: readonly Tie[]): Promise<ReadonlySet<string>> {
  const each = <T>(read: (made: Tie) => T): T[] => ties.map(read)
  const rows = await tx.many(
    ClaimRow,
    sql`
    update idempotency_keys k set resource_id = given.resource_id
    from unnest(
      ${each(({ tenant }) => tenant.organisationId)}::text[], ${each(({ tenant }) => tenant.environment)}::text[],
      ${each(({ key }) => key)}::text[], ${each(({ claim }) => claim)}::text[], ${each(({ resourceId }) => resourceId)}::text[]
    ) as given (organisation_id, environment, key, claim, resource_id)
    where k.organisation_id = given.organisation_id and k.environment = given.environment and k.key = given.key and k.claim = given.claim
      and k.state = 'running'
    returning k.claim`,
  )
  return new Set(rows.map(({ claim }) => claim))
}

/** By constants, so that the planner uses the primary key in every transaction. */
async function tieOne(
  tx: Tx,
  { tenant: { organisationId, environment }, key, claim, resourceId }: Tie,
): Promise<ReadonlySet<string>> {
  const tied = await tx.run(sql`
    update idempotency_keys set resource_id = ${resourceId}
    where organisation_id = ${organisationId} and environment = ${environment} and key = ${key} and claim = ${claim} and state = 'running'`)
  return new Set(tied === 1 ? [claim] : [])
}
