import { z } from 'zod'
import type { Tenant } from '../platform/ctx.ts'
import { type Queryable, sql } from '../platform/db/db.ts'
import { id } from '../platform/ids.ts'
import type { WrappedRow, Wrapping } from './kek-store.ts'

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
