import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'

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
