import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../platform/db/db.ts'
import type { WrappedRow, Wrapping } from './kek-store.ts'

export type KeyPurpose = 'settler' | 'settlement-token' | 'answers' | 'mpp-challenge' | 'seal' | 'file-link' | 'sign-in'

export const SealedKeyRow = z.object({
  kid: z.string(),
  purpose: z.string(),
  algorithm: z.string(),
  fingerprint: z.string(),
  wrappedDataKey: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  sealed: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
})
export type SealedKeyRow = z.output<typeof SealedKeyRow>

export function findCurrentKey(db: Queryable, purpose: KeyPurpose): Promise<SealedKeyRow | undefined> {
  return db.maybeOne(
    SealedKeyRow,
    sql`
    select kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed from sealed_keys where purpose = ${purpose} and retired_at is null`,
  )
}

export function findKey(db: Queryable, kid: string): Promise<SealedKeyRow | undefined> {
  return db.maybeOne(
    SealedKeyRow,
    sql`select kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed from sealed_keys where kid = ${kid}`,
  )
}

/** Returns false and stores nothing when its key-encryption key was retired in the meantime. */
export async function insertKey(tx: Tx, key: SealedKeyRow, now: Date): Promise<boolean> {
  const stored = await tx.run(sql`
    insert into sealed_keys (kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed, created_at)
    select ${key.kid}, ${key.purpose}, ${key.algorithm}, k.fingerprint, ${key.wrappedDataKey}::bytea, ${key.sealed}::bytea, ${now}::timestamptz
    from key_encryption_keys k where k.fingerprint = ${key.fingerprint} and k.retired_at is null for share`)
  return stored === 1
}

/** The service's keys under other key-encryption keys, ordered by kid. */
export function listKeysUnderOther(
  db: Queryable,
  fingerprint: string,
  page: { readonly afterId: string; readonly limit: number },
): Promise<SealedKeyRow[]> {
  return db.many(
    SealedKeyRow,
    sql`
    select kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed from sealed_keys
    where fingerprint <> ${fingerprint} and kid > ${page.afterId} order by kid limit ${page.limit}`,
  )
}

/** Replaces a key's wrapped data key if the row is unchanged. */
export function markKeyRewrapped(db: Queryable, was: WrappedRow, now: Wrapping): Promise<number> {
  return db.run(sql`
    update sealed_keys set fingerprint = ${now.fingerprint}, wrapped_data_key = ${now.wrappedDataKey}
    where kid = ${was.id} and fingerprint = ${was.fingerprint} and wrapped_data_key = ${was.wrappedDataKey}`)
}

export const DatedKeyRow = SealedKeyRow.extend({ createdAt: z.date(), retiredAt: z.date().nullable() })
export type DatedKeyRow = z.output<typeof DatedKeyRow>

/** The purpose's keys that are current or were retired after an instant, newest first. Withdrawn keys are not among them. */
export function listKeysSince(db: Queryable, purpose: KeyPurpose, retiredAfter: Date): Promise<DatedKeyRow[]> {
  return db.many(
    DatedKeyRow,
    sql`
    select kid, purpose, algorithm, fingerprint, wrapped_data_key, sealed, created_at, retired_at from sealed_keys
    where purpose = ${purpose} and withdrawn_at is null and (retired_at is null or retired_at > ${retiredAfter})
    order by created_at desc, retired_at desc nulls first`,
  )
}

/** Retires the purpose's current key. Returns its kid, or undefined when there is none. */
export async function markRetired(tx: Tx, purpose: KeyPurpose, now: Date): Promise<string | undefined> {
  const row = await tx.maybeOne(
    z.object({ kid: z.string() }),
    sql`update sealed_keys set retired_at = ${now} where purpose = ${purpose} and retired_at is null returning kid`,
  )
  return row?.kid
}

/** Withdraws a key, and retires it if it is the current one: `wasCurrent`. Undefined if there is no such key, or it was withdrawn before. */
export function markWithdrawn(
  tx: Tx,
  { purpose, kid }: Pick<SealedKeyRow, 'kid'> & { readonly purpose: KeyPurpose },
  now: Date,
): Promise<{ readonly wasCurrent: boolean } | undefined> {
  return tx.maybeOne(
    z.object({ wasCurrent: z.boolean() }),
    sql`
    with before as (
      select kid, retired_at from sealed_keys
      where purpose = ${purpose} and kid = ${kid} and withdrawn_at is null for update)
    update sealed_keys as k set withdrawn_at = ${now}, retired_at = coalesce(before.retired_at, ${now})
    from before where k.kid = before.kid returning before.retired_at is null as was_current`,
  )
}
