import type { NetworkName } from '@purser/protocol'
import { z } from 'zod'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'

/**
 * The lease to follow a network, as stored: another epoch or another name is another leader. It is in the row of the cursor and not in
 * `platform/leases`, so that one lock proves the lease and locks the cursor, also against a process of the previous version.
 */
export interface WatcherLease {
  readonly network: NetworkName
  readonly epoch: bigint
  /** Random for each process: after an asynchronous fail-over of the database an epoch can be assigned twice. */
  readonly leader: string
}

/** The blocks up to which a network was read; null until its head is known. */
export const Cursor = z.object({ scanned: z.bigint().nullable(), checked: z.bigint().nullable() })
export type Cursor = z.output<typeof Cursor>

/**
 * Takes the lease of a network that has no leader, or whose leader did not renew in time; undefined while another process leads. Uses the
 * database's time, so that the clocks of the processes do not matter.
 */
export async function takeLease(
  db: Queryable,
  network: NetworkName,
  leader: { readonly name: string; readonly leaseMs: number },
): Promise<WatcherLease | undefined> {
  const row = await db.maybeOne(
    z.object({ epoch: z.bigint() }),
    sql`
    insert into deposit_cursors as cursor (network, leader, lease_until, epoch)
    values (${network}, ${leader.name}, clock_timestamp() + ${leader.leaseMs} * interval '1 ms', 1)
    on conflict (network) do update set leader = excluded.leader, lease_until = excluded.lease_until, epoch = cursor.epoch + 1
    where cursor.lease_until is null or cursor.lease_until < clock_timestamp()
    returning epoch`,
  )
  return row && { network, epoch: row.epoch, leader: leader.name }
}

/** Renews the lease; false if another process has taken it. */
export async function renewLease(db: Queryable, lease: WatcherLease, leaseMs: number): Promise<boolean> {
  const renewed = await db.run(sql`
    update deposit_cursors set lease_until = clock_timestamp() + ${leaseMs} * interval '1 ms'
    where ${isUnder(lease)}`)
  return renewed === 1
}

/** Releases the lease immediately. */
export async function releaseLease(db: Queryable, lease: WatcherLease): Promise<void> {
  await db.run(sql`update deposit_cursors set lease_until = null where ${isUnder(lease)}`)
}

function isUnder({ network, epoch, leader }: WatcherLease): Sql {
  return sql`network = ${network} and epoch = ${epoch} and leader = ${leader}`
}

/**
 * The cursor, locked until the transaction ends; undefined if another process leads. Every write of a leader begins with it: a process that
 * lost the lease without noticing writes nothing.
 */
export function lockCursor(tx: Tx, lease: WatcherLease): Promise<Cursor | undefined> {
  return tx.maybeOne(Cursor, sql`select scanned, checked from deposit_cursors where ${isUnder(lease)} for update`)
}

/** Blocks the leader of a network, if there is one, until the transaction ends, for a write by another process. */
export async function lockNetwork(tx: Tx, network: NetworkName): Promise<void> {
  await tx.run(sql`insert into deposit_cursors (network) values (${network}) on conflict do nothing`)
  await tx.one(z.object({}), sql`select 1 as locked from deposit_cursors where network = ${network} for update`)
}

export function findCursor(db: Queryable, lease: WatcherLease): Promise<Cursor | undefined> {
  return db.maybeOne(Cursor, sql`select scanned, checked from deposit_cursors where ${isUnder(lease)}`)
}

export async function moveCursor(
  tx: Tx,
  network: NetworkName,
  cursor: { readonly scanned: bigint; readonly checked: bigint },
): Promise<void> {
  await tx.run(
    sql`update deposit_cursors set scanned = ${cursor.scanned}, checked = ${cursor.checked} where network = ${network}`,
  )
}

export const ScannedBlock = z.object({ number: z.bigint(), hash: StoredHex })
export type ScannedBlock = z.output<typeof ScannedBlock>

/** The remembered blocks below the given one, newest first. */
export function listScannedBlocks(
  db: Queryable,
  network: NetworkName,
  page: { readonly below: bigint; readonly limit: number },
): Promise<ScannedBlock[]> {
  return db.many(
    ScannedBlock,
    sql`
    select number, hash from scanned_blocks where network = ${network} and number < ${page.below}
    order by number desc limit ${page.limit}`,
  )
}

/** The lowest remembered block above the given one. */
export function findScannedBlockAbove(
  db: Queryable,
  network: NetworkName,
  ancestor: bigint,
): Promise<ScannedBlock | undefined> {
  return db.maybeOne(
    ScannedBlock,
    sql`select number, hash from scanned_blocks where network = ${network} and number > ${ancestor} order by number limit 1`,
  )
}

/** Remembers blocks, and deletes those below the window. */
export async function rememberBlocks(
  tx: Tx,
  network: NetworkName,
  blocks: readonly ScannedBlock[],
  windowFrom: bigint,
): Promise<void> {
  const numbers = blocks.map(({ number }) => number)
  const hashes = blocks.map(({ hash }) => hash)
  await tx.run(sql`
    insert into scanned_blocks (network, number, hash)
    select ${network}, number, hash from unnest(${numbers}::bigint[], ${hashes}::text[]) as given (number, hash)
    on conflict (network, number) do update set hash = excluded.hash`)
  await tx.run(sql`delete from scanned_blocks where network = ${network} and number < ${windowFrom}`)
}

export async function forgetBlocksAbove(tx: Tx, network: NetworkName, ancestor: bigint): Promise<void> {
  await tx.run(sql`delete from scanned_blocks where network = ${network} and number > ${ancestor}`)
}
