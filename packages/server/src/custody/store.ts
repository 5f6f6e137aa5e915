import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'

export type KeyPurpose = 'settler' | 'settlement-token' | 'answers'

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
