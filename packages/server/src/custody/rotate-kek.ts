import { type Auditing, auditOperator } from '../platform/audit.ts'
import { equalInConstantTime } from '../platform/constant-time.ts'
import type { Db } from '../platform/db/db.ts'
import type { Random } from '../platform/random.ts'
import { findCurrentFingerprint, lockKeys, markCurrent, type WrappedRow, type WrappedTable } from './kek-store.ts'
import { type KeyEncryption, type KeyRing, refuseOtherKeys } from './key-encryption.ts'
import { type KeyRotation, type KeyWithdrawal, replaceKey, withdrawKey, wrappedServiceKeys } from './service-keys.ts'
import { wrappedSeeds } from './wallet-keys.ts'

/** All tables with wrapped data keys. */
const tables: readonly WrappedTable[] = [wrappedServiceKeys, wrappedSeeds]
const pageMax = 100
/** With more failures, the old key or its key service is the likely cause, not the rows. */
const failuresMax = 10

/** Result of a rotation. */
export interface KekRotation {
  /** Fingerprint of the current key. */
  readonly current: string
  /** Data keys rewrapped by this run, by table. */
  readonly rewrapped: Readonly<Record<string, number>>
  /** Rows whose data key did not open, with the reason. They are unchanged, and their key is still needed. */
  readonly failed: readonly { readonly row: string; readonly reason: string }[]
}

export interface KekRotationOptions extends Auditing {
  readonly db: Db
  /** Contains the target key first, and all other keys that the database needs. */
  readonly ring: KeyRing
}

/**
 * Rotates to the ring's first key. First makes it current for new data, then unwraps, wraps and stores each data key, one row at a time; no secret
 * is opened. It may be interrupted and run again, and concurrent runs are harmless, because a row is replaced only if it is unchanged. Processes
 * with both keys keep working. The operator's audit log gets `keys.rotate` once for the change of key, and `keys.rewrap` for each finished run that
 * changed or failed rows.
 */
export async function rotateKek(options: KekRotationOptions): Promise<KekRotation> {
  const { ring } = options
  const target = ring.first
  await refuseOtherKeys(options)
  await verifyUsable(target, options.random)
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

/** Records a finished run. Rows are stored one by one, so the rows of an interrupted run are in no record. */
async function recordRewrapped(
  { current, rewrapped, failed }: KekRotation,
  options: KekRotationOptions,
): Promise<void> {
  if (failed.length === 0 && Object.keys(rewrapped).length === 0) return
  const details = { rewrapped, failed: failed.map(({ row }) => row) }
  await options.db.tx(async (tx) => auditOperator(options, tx, { action: 'keys.rewrap', target: current, details }))
}

/** Pages by key and not by offset, so that a failing row is visited once. No new rows appear under a retired key. */
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
 * Replaces a row's wrapped data key only after the new wrapping was verified. Returns the reason when the data key does not open. Throws when the
 * new key cannot wrap.
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
    const wrappedDataKey = await wrapVerified(ring.first, dataKey, row.associatedData)
    return await table.markRewrapped(db, row, { fingerprint: ring.first.fingerprint, wrappedDataKey })
  } finally {
    dataKey.fill(0)
  }
}

async function wrapVerified(kek: KeyEncryption, dataKey: Uint8Array, associatedData: string): Promise<Uint8Array> {
  const wrapped = await kek.wrap(dataKey, associatedData)
  const opened = await kek.unwrap(wrapped, associatedData)
  try {
    if (!equalInConstantTime(dataKey, opened))
      throw new Error('the new key-encryption key does not unwrap its own output')
    return wrapped
  } finally {
    opened.fill(0)
  }
}

/** Verifies before any change that the key can both wrap and unwrap; otherwise all data would become unreadable. */
async function verifyUsable(kek: KeyEncryption, random: Random): Promise<void> {
  const probe = random.bytes(32)
  await wrapVerified(kek, probe, 'purser|probe')
}

export interface RotationOptions extends Auditing {
  readonly db: Db
  readonly ring: KeyRing
}

/** Audit actions in the operator's log. */
const actions = { 'mpp-challenge': 'keys.rotateMppSecret', seal: 'keys.rotateSeal' } as const

/**
 * Creates a new secret for MPP challenges and retires the previous one, in one transaction. Running processes load it automatically; challenges of
 * the retired secret can be paid until they expire. Needs the deployment's key-encryption key and never creates one.
 */
export function rotateMppSecret(options: RotationOptions): Promise<KeyRotation> {
  return replace('mpp-challenge', options)
}

/**
 * Creates a new Ed25519 key for offers, receipts, seals and deliveries. It is in the key set at once and signs in every process after ten minutes.
 * The previous key stays in the key set, unless `withdrawSealKey` removes it.
 */
export function rotateSealKey(options: RotationOptions): Promise<KeyRotation> {
  return replace('seal', options)
}

async function replace(purpose: 'mpp-challenge' | 'seal', options: RotationOptions): Promise<KeyRotation> {
  await refuseOtherKeys(options)
  const making = { ...options, isPrivateKey: () => true }
  return replaceKey(purpose, making, async (tx, { current: target, retired }) =>
    auditOperator(options, tx, { action: actions[purpose], target, details: { retired } }),
  )
}

/**
 * Removes a leaked Ed25519 key from the key set, so that nothing that it signed is accepted any more. If it was the current one, a new key signs in
 * each process as soon as the process has read the keys. Undefined if there is no such key, or it was withdrawn before.
 */
export async function withdrawSealKey(options: RotationOptions, kid: string): Promise<KeyWithdrawal | undefined> {
  await refuseOtherKeys(options)
  const making = { ...options, isPrivateKey: () => true }
  return withdrawKey({ purpose: 'seal', kid }, making, async (tx, { withdrawn: target, current }) =>
    auditOperator(options, tx, { action: 'keys.withdrawSeal', target, details: { current } }),
  )
}
