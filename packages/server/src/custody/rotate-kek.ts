import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { refuseOtherKeys } from './current-key.ts'
import { lockKeys, markCurrent, type WrappedRow, type WrappedTable } from './kek-store.ts'
import type { KeyEncryption, KeyRing } from './key-encryption.ts'
import { wrappedServiceKeys } from './service-keys.ts'
import { wrappedSeeds } from './wallet-keys.ts'

/** Every table that holds data keys under a key-encryption key. */
const tables: readonly WrappedTable[] = [wrappedServiceKeys, wrappedSeeds]
const pageMax = 100
/** Beyond it the old key, or the service that has it, is at fault and not the rows. */
const failuresMax = 10

/** What a rotation did. */
export interface KekRotation {
  /** The key that everything is under now. */
  readonly current: string
  /** Data keys rewrapped by this run, by table. */
  readonly rewrapped: Readonly<Record<string, number>>
  /** Rows whose data key did not open, with why: they are as they were, and the key that they are under is still needed. */
  readonly failed: readonly { readonly row: string; readonly reason: string }[]
}

export interface KekRotationOptions {
  readonly db: Db
  readonly clock: Clock
  readonly random: Random
  /** Its first key is the one that the rotation leads to; all others that the database needs are in it too. */
  readonly ring: KeyRing
}

/**
 * Puts everything under the ring's first key: from the first step on new things are sealed with it, and then each data key is
 * unwrapped, wrapped and stored, one row at a time, with no secret opened. May be killed at any moment and run again, and two at once do
 * no harm: a row is exchanged only if it is still as it was read. Processes that hold both keys go on throughout.
 */
export async function rotateKek(options: KekRotationOptions): Promise<KekRotation> {
  const { db, ring, clock } = options
  const target = ring.first
  await refuseOtherKeys(options)
  await proveUsable(target, options.random)
  await db.tx(async (tx) => {
    await lockKeys(tx)
    await markCurrent(tx, target.fingerprint, clock.now())
  })
  const rewrapped: Record<string, number> = {}
  const failed: { row: string; reason: string }[] = []
  for (const table of tables) {
    for await (const row of rowsUnderOthers(table, options)) {
      const outcome = await rewrap(table, row, options)
      if (typeof outcome === 'number') rewrapped[table.name] = (rewrapped[table.name] ?? 0) + outcome
      else if (failed.push({ row: row.id, ...outcome }) > failuresMax)
        throw new Error(`more than ${failuresMax} data keys do not open; the last: ${outcome.reason}`)
    }
  }
  return { current: target.fingerprint, rewrapped, failed }
}

/** By key and not by offset, so that a row that fails is passed and not met for ever. Nothing new comes under a retired key. */
async function* rowsUnderOthers(table: WrappedTable, { db, ring }: KekRotationOptions): AsyncGenerator<WrappedRow> {
  let afterId = ''
  for (;;) {
    const rows = await table.list(db, ring.first.fingerprint, { afterId, limit: pageMax })
    yield* rows
    const last = rows.at(-1)
    if (last === undefined) return
    afterId = last.id
  }
}

/**
 * A data key is replaced in its row only after it was seen to come out of the new wrapping as it went in. One that does not open is
 * the row's fault and told; that the new key does not wrap ends the rotation.
 */
async function rewrap(
  table: WrappedTable,
  row: WrappedRow,
  { db, ring }: KekRotationOptions,
): Promise<number | { readonly reason: string }> {
  const dataKey = await ring
    .key(row.fingerprint)
    .unwrap(row.wrappedDataKey, row.associatedData)
    .catch((error: unknown) => ({ reason: error instanceof Error ? error.message : 'unknown' }))
  if ('reason' in dataKey) return dataKey
  try {
    const wrappedDataKey = await wrapProven(ring.first, dataKey, row.associatedData)
    return await table.markRewrapped(db, row, { fingerprint: ring.first.fingerprint, wrappedDataKey })
  } finally {
    dataKey.fill(0)
  }
}

async function wrapProven(kek: KeyEncryption, dataKey: Uint8Array, associatedData: string): Promise<Uint8Array> {
  const wrapped = await kek.wrap(dataKey, associatedData)
  const opened = await kek.unwrap(wrapped, associatedData)
  try {
    if (opened.length !== dataKey.length || !timingSafeEqual(opened, dataKey))
      throw new Error('the new key-encryption key does not give back what it wrapped')
    return wrapped
  } finally {
    opened.fill(0)
  }
}

/** Before anything is changed: a key that may wrap and not unwrap, or the other way round, would lock everything away. */
async function proveUsable(kek: KeyEncryption, random: Random): Promise<void> {
  const probe = random.bytes(32)
  await wrapProven(kek, probe, 'purser|probe')
}
