import { timingSafeEqual } from 'node:crypto'
import { type Auditing, auditOperator } from '../platform/audit.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { refuseOtherKeys } from './current-key.ts'
import { findCurrentFingerprint, lockKeys, markCurrent, type WrappedRow, type WrappedTable } from './kek-store.ts'
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

export interface KekRotationOptions extends Auditing {
  readonly db: Db
  /** Its first key is the one that the rotation leads to; all others that the database needs are in it too. */
  readonly ring: KeyRing
}

/**
 * Puts everything under the ring's first key: from the first step on new things are sealed with it, and then each data key is
 * unwrapped, wrapped and stored, one row at a time, with no secret opened. May be killed at any moment and run again, and two at once do
 * no harm: a row is exchanged only if it is still as it was read. Processes that hold both keys go on throughout. In the operator's log it is
 * `keys.rotate`, with the change of key and once, and `keys.rewrap` for each run that came to its end and had something to do.
 */
export async function rotateKek(options: KekRotationOptions): Promise<KekRotation> {
  const { ring } = options
  const target = ring.first
  await refuseOtherKeys(options)
  await proveUsable(target, options.random)
  await makeCurrent(target, options)
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
  const rotation = { current: target.fingerprint, rewrapped, failed }
  await recordRewrapped(rotation, options)
  return rotation
}

function makeCurrent({ fingerprint }: KeyEncryption, options: KekRotationOptions): Promise<void> {
  return options.db.tx(async (tx) => {
    await lockKeys(tx)
    const before = await findCurrentFingerprint(tx)
    await markCurrent(tx, fingerprint, options.clock.now())
    if (before === fingerprint) return
    await auditOperator(options, tx, { action: 'keys.rotate', target: fingerprint, details: { from: before ?? null } })
  })
}

/** Each row was stored by itself, so that a run may be killed; what a killed one did is in none. */
async function recordRewrapped(
  { current, rewrapped, failed }: KekRotation,
  options: KekRotationOptions,
): Promise<void> {
  if (failed.length === 0 && Object.keys(rewrapped).length === 0) return
  const details = { rewrapped, failed: failed.map(({ row }) => row) }
  await options.db.tx((tx) => auditOperator(options, tx, { action: 'keys.rewrap', target: current, details }))
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
