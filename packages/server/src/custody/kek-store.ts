import { z } from 'zod'
import type { Tenant } from '../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'
import { id } from '../platform/ids.ts'

/** Lock that serializes the creation of keys and changes of the current key-encryption key. */
export async function lockKeys(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.custody', 0))`)
}

/** Fingerprint of the current key-encryption key; undefined in a database where nothing was ever sealed. */
export async function findCurrentFingerprint(db: Queryable): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ fingerprint: z.string() }),
    sql`select fingerprint from key_encryption_keys where retired_at is null`,
  )
  return row?.fingerprint
}

/** Fingerprints of all key-encryption keys in use. */
export async function listFingerprintsInUse(db: Queryable): Promise<string[]> {
  const rows = await db.many(
    z.object({ fingerprint: z.string() }),
    sql`select fingerprint from sealed_keys union select fingerprint from wallet_seeds`,
  )
  return rows.map(({ fingerprint }) => fingerprint)
}

/**
 * Makes a new or known key-encryption key current and retires the previous one. Writers under the previous key lock its row (`for share`), so their
 * data is either stored before, and found by the rewrapping, or not stored.
 */
export async function markCurrent(tx: Tx, fingerprint: string, now: Date): Promise<void> {
  await tx.run(sql`
    update key_encryption_keys set retired_at = ${now} where retired_at is null and fingerprint <> ${fingerprint}`)
  await tx.run(sql`
    insert into key_encryption_keys (fingerprint, created_at) values (${fingerprint}, ${now})
    on conflict (fingerprint) do update set retired_at = null`)
}

export const WrappedRow = z.object({
  /** The row's primary key. */
  id: z.string(),
  fingerprint: z.string(),
  wrappedDataKey: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  /** Associated data of the ciphertext. */
  associatedData: z.string(),
})
export type WrappedRow = z.output<typeof WrappedRow>

/** A wrapped data key as stored in a row. */
export type Wrapping = Pick<WrappedRow, 'fingerprint' | 'wrappedDataKey'>

/** A table whose rows contain wrapped data keys. */
export interface WrappedTable {
  readonly name: string
  /** Rows under other keys than this one, ordered by id, after `afterId`. */
  list(
    db: Queryable,
    fingerprint: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<WrappedRow[]>
  /** Replaces the wrapped data key if the row is unchanged. Returns the number of changed rows. */
  markRewrapped(db: Queryable, was: WrappedRow, now: Wrapping): Promise<number>
}

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array)

export const SealedSeedRow = z.object({
  id: z.string(),
  algorithm: z.string(),
  version: z.number(),
  fingerprint: z.string(),
  wrappedDataKey: bytes,
  sealed: bytes,
})
export type SealedSeedRow = z.output<typeof SealedSeedRow>

export function findSeed(db: Queryable, tenant: Tenant): Promise<SealedSeedRow | undefined> {
  return db.maybeOne(
    SealedSeedRow,
    sql`
    select id, algorithm, version, fingerprint, wrapped_data_key, sealed from wallet_seeds
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`,
  )
}

const TenantSeedRow = SealedSeedRow.extend({ organisationId: z.string(), environment: z.string() })

/** The seeds of several tenants, in their order. */
export async function findSeeds(db: Queryable, tenants: readonly Tenant[]): Promise<(SealedSeedRow | undefined)[]> {
  const rows = await db.many(
    TenantSeedRow,
    sql`
    select id, organisation_id, environment, algorithm, version, fingerprint, wrapped_data_key, sealed from wallet_seeds
    where (organisation_id, environment) in (select * from unnest(
      ${tenants.map(({ organisationId }) => organisationId)}::text[], ${tenants.map(({ environment }) => environment)}::text[]))`,
  )
  const byTenant = new Map(
    rows.map(({ organisationId, environment, ...seed }) => [`${organisationId}/${environment}`, seed]),
  )
  return tenants.map(({ organisationId, environment }) => byTenant.get(`${organisationId}/${environment}`))
}

/**
 * Keeps an existing seed: an organisation never gets a second one in an environment. Stores nothing when the seed's key-encryption key was retired
 * in the meantime.
 */
export async function insertSeedOnce(db: Queryable, tenant: Tenant, seed: SealedSeedRow, now: Date): Promise<void> {
  await db.run(sql`
    insert into wallet_seeds
      (id, organisation_id, environment, algorithm, version, fingerprint, wrapped_data_key, sealed, created_at)
    select ${seed.id}, ${tenant.organisationId}, ${tenant.environment}, ${seed.algorithm}, ${seed.version}::integer,
      k.fingerprint, ${seed.wrappedDataKey}::bytea, ${seed.sealed}::bytea, ${now}::timestamptz
    from key_encryption_keys k where k.fingerprint = ${seed.fingerprint} and k.retired_at is null for share
    on conflict (organisation_id, environment) do nothing`)
}

const OwnedSeedRow = SealedSeedRow.extend({ organisationId: id('org'), environment: z.enum(['test', 'live']) })
export type OwnedSeedRow = z.output<typeof OwnedSeedRow>

/** The seeds of all tenants under other key-encryption keys. Only for a rotation, which opens none of them. */
export function listSeedsUnderOther(
  db: Queryable,
  fingerprint: string,
  page: { readonly afterId: string; readonly limit: number },
): Promise<OwnedSeedRow[]> {
  return db.many(
    OwnedSeedRow,
    sql`
    select id, organisation_id, environment, algorithm, version, fingerprint, wrapped_data_key, sealed from wallet_seeds
    where fingerprint <> ${fingerprint} and id > ${page.afterId} order by id limit ${page.limit}`,
  )
}

/** Replaces a seed's wrapped data key if the row is unchanged. */
export function markSeedRewrapped(db: Queryable, was: WrappedRow, now: Wrapping): Promise<number> {
  return db.run(sql`
    update wallet_seeds set fingerprint = ${now.fingerprint}, wrapped_data_key = ${now.wrappedDataKey}
    where id = ${was.id} and fingerprint = ${was.fingerprint} and wrapped_data_key = ${was.wrappedDataKey}`)
}
