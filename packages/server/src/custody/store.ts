import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'

export type KeyPurpose = 'settler' | 'settlement-token' | 'answers' | 'mpp-challenge' | 'seal' | 'file-link'

export const SealedKeyRow = z.object({
  kid: z.string(),
  purpose: z.string(),
  algorithm: z.string(),
  wrappedDataKey: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  sealed: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
})
export type SealedKeyRow = z.output<typeof SealedKeyRow>

/** Lets one process at a time look for missing keys and make them. */
export async function lockKeys(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.custody', 0))`)
}

export async function listFingerprints(db: Queryable): Promise<string[]> {
  const rows = await db.many(z.object({ fingerprint: z.string() }), sql`select fingerprint from key_encryption_keys`)
  return rows.map((row) => row.fingerprint)
}

export async function insertFingerprint(tx: Tx, fingerprint: string, now: Date): Promise<void> {
  await tx.run(sql`insert into key_encryption_keys (fingerprint, created_at) values (${fingerprint}, ${now})`)
}

export function findCurrentKey(db: Queryable, purpose: KeyPurpose): Promise<SealedKeyRow | undefined> {
  return db.maybeOne(
    SealedKeyRow,
    sql`
    select kid, purpose, algorithm, wrapped_data_key, sealed from sealed_keys where purpose = ${purpose} and retired_at is null`,
  )
}

export async function insertKey(tx: Tx, key: SealedKeyRow, fingerprint: string, now: Date): Promise<void> {
  await tx.run(sql`
    insert into sealed_keys (kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed, created_at)
    values (${key.kid}, ${key.purpose}, ${key.algorithm}, ${fingerprint}, ${key.wrappedDataKey}, ${key.sealed}, ${now})`)
}

export const DatedKeyRow = SealedKeyRow.extend({ createdAt: z.date(), retiredAt: z.date().nullable() })
export type DatedKeyRow = z.output<typeof DatedKeyRow>

/** The purpose's keys that are current or were retired after an instant, newest first. */
export function listKeysSince(db: Queryable, purpose: KeyPurpose, retiredAfter: Date): Promise<DatedKeyRow[]> {
  return db.many(
    DatedKeyRow,
    sql`
    select kid, purpose, algorithm, wrapped_data_key, sealed, created_at, retired_at from sealed_keys
    where purpose = ${purpose} and (retired_at is null or retired_at > ${retiredAfter})
    order by created_at desc, retired_at desc nulls first`,
  )
}

/** Retires the purpose's current key; answers its kid, or undefined when there is none. */
export async function markRetired(tx: Tx, purpose: KeyPurpose, now: Date): Promise<string | undefined> {
  const row = await tx.maybeOne(
    z.object({ kid: z.string() }),
    sql`update sealed_keys set retired_at = ${now} where purpose = ${purpose} and retired_at is null returning kid`,
  )
  return row?.kid
}
