import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'

/** Lets one process at a time look for missing keys and make them, and change which key-encryption key is current. */
export async function lockKeys(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('purser.custody', 0))`)
}

/** The key-encryption key that seals now; undefined in a database in which nothing was ever sealed. */
export async function findCurrentFingerprint(db: Queryable): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ fingerprint: z.string() }),
    sql`select fingerprint from key_encryption_keys where retired_at is null`,
  )
  return row?.fingerprint
}

/** Every key-encryption key that something is still sealed under. */
export async function listFingerprintsInUse(db: Queryable): Promise<string[]> {
  const rows = await db.many(
    z.object({ fingerprint: z.string() }),
    sql`select fingerprint from sealed_keys union select fingerprint from wallet_seeds`,
  )
  return rows.map(({ fingerprint }) => fingerprint)
}

/**
 * Makes a key-encryption key the current one, new or known, and retires the one before. Whoever is about to store something under
 * that one holds its row (`for share`), so that it is stored before, and found by the rewrapping, or not at all.
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
  /** What the ciphertext is bound to. */
  associatedData: z.string(),
})
export type WrappedRow = z.output<typeof WrappedRow>

/** A data key as it stands in a row. */
export type Wrapping = Pick<WrappedRow, 'fingerprint' | 'wrappedDataKey'>

/** A table whose rows hold a data key under a key-encryption key. */
export interface WrappedTable {
  readonly name: string
  /** Rows under another key than this one, in the order of their ids, from after `afterId` on. */
  list(
    db: Queryable,
    fingerprint: string,
    page: { readonly afterId: string; readonly limit: number },
  ): Promise<WrappedRow[]>
  /** Exchanges the wrapping if the row is still as it was read; answers how many rows that were. */
  markRewrapped(db: Queryable, was: WrappedRow, now: Wrapping): Promise<number>
}
