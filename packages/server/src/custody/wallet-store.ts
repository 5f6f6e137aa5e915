import { z } from 'zod'
import type { Tenant } from '../platform/ctx.ts'
import { type Queryable, sql } from '../platform/db/db.ts'

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

/** Keeps the seed that is there already: an organisation never gets a second one in an environment. */
export async function insertSeedOnce(db: Queryable, tenant: Tenant, seed: SealedSeedRow, now: Date): Promise<void> {
  await db.run(sql`
    insert into wallet_seeds
      (id, organisation_id, environment, algorithm, version, fingerprint, wrapped_data_key, sealed, created_at)
    values (${seed.id}, ${tenant.organisationId}, ${tenant.environment}, ${seed.algorithm}, ${seed.version},
      ${seed.fingerprint}, ${seed.wrappedDataKey}, ${seed.sealed}, ${now})
    on conflict (organisation_id, environment) do nothing`)
}
