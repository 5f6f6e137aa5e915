import { createHash } from 'node:crypto'
import type { Deps } from '../../platform/ctx.ts'
import { batch } from '../../platform/db/batch.ts'
import type { Db } from '../../platform/db/db.ts'
import { bundledList } from './bundled-list.ts'
import { dateList, type ListDates } from './dating.ts'
import { findCurrentList, findListBytes, insertList, type ListRow, lockLists, markListSeen } from './list-store.ts'
import { ListRefused } from './sanctions-list.ts'

const keptShare = 0.8

export interface NewList extends ListDates {
  readonly source: string
  /** In lower case. */
  readonly addresses: ReadonlySet<string>
}

type ListDeps = Pick<Deps, 'db' | 'clock'>

export interface Taken {
  readonly list: ListRow
  /** Whether its addresses differ from the previous list's. */
  readonly isChanged: boolean
}

/**
 * Replaces the current list, at once for every process, or throws `ListRefused` and changes nothing. A list with more than a fifth fewer addresses
 * counts as truncated, unless `acceptCount` equals its number of addresses, which an operator has checked.
 */
export function takeList(deps: ListDeps, next: NewList, acceptCount?: number): Promise<Taken> {
  return deps.db.tx(async (tx) => {
    await lockLists(tx)
    const present = await findCurrentList(tx)
    refuseWorse(present, next, acceptCount)
    const { source, listDate, asOf } = next
    const row = { version: (present?.version ?? 0n) + 1n, source, listDate, asOf, ...packed(next.addresses) }
    if (present !== undefined && Buffer.compare(present.sha256, row.sha256) === 0) {
      await markListSeen(tx, present.version, row)
      return { list: { ...row, version: present.version }, isChanged: false }
    }
    await insertList(tx, { ...row, createdAt: deps.clock.now() })
    return { list: row, isChanged: true }
  })
}

function refuseWorse(present: ListRow | undefined, next: NewList, acceptCount: number | undefined): void {
  const count = next.addresses.size
  if (count === 0) throw new ListRefused('empty', 'the list has no EVM address')
  if (present === undefined) return
  if (next.asOf < present.asOf)
    throw new ListRefused('older', `the list is of ${next.listDate}, which is older than the current one`)
  if (count < present.addressCount * keptShare && acceptCount !== count)
    throw new ListRefused(
      'shrunk',
      `the list has ${count} addresses, the current one ${present.addressCount}: too many were removed at once`,
    )
}

/** Stores the bundled list unless the current one is as fresh. Has an effect at the first start and after an update with a newer list. */
export async function ensureBundledList(deps: ListDeps): Promise<void> {
  const { listDate, source } = bundledList
  const dates = dateList(
    { format: 'plain', listDate },
    { now: deps.clock.now(), isLive: false, lastModified: undefined, vouchedDate: undefined },
  )
  const present = await findCurrentList(deps.db)
  if (present !== undefined && present.asOf >= dates.asOf) return
  await takeList(deps, { ...dates, source, addresses: new Set(bundledList.addresses) }).catch((error: unknown) => {
    if (!(error instanceof ListRefused)) throw error
  })
}

export interface LoadedList {
  readonly row: ListRow
  readonly addresses: ReadonlySet<string>
}

export interface ListReader {
  /** Reads the current list. */
  read(): Promise<LoadedList>
  /** The list that was read last, without a query. */
  last(): LoadedList
}

/**
 * Reads the current list. Concurrent calls share one query for the version, which starts after them, so that a new list takes effect in every
 * process on commit. The addresses of a version never change and are cached.
 */
export function createListReader(db: Db): ListReader {
  let last: LoadedList | undefined
  const read = batch<undefined, LoadedList>({ itemsMax: 1_000, batchesMax: 1 }, async (requested) => {
    const row = await findCurrentList(db)
    if (row === undefined) throw new Error('there is no sanctions list in the database')
    const addresses = last?.row.version === row.version ? last.addresses : await readAddresses(db, row.version)
    const current = { row, addresses }
    last = current
    return requested.map(() => current)
  })
  return {
    read: () => read(undefined),
    last() {
      if (last === undefined) throw new Error('the sanctions list was not read yet')
      return last
    },
  }
}

/** The addresses of a version, in lower case. */
export async function readAddresses(db: Db, version: bigint): Promise<ReadonlySet<string>> {
  const bytes = await findListBytes(db, version)
  if (bytes === undefined) throw new Error(`there is no sanctions list of version ${version}`)
  const hex = Buffer.from(bytes).toString('hex')
  return new Set(Array.from({ length: hex.length / 40 }, (_, n) => `0x${hex.slice(n * 40, n * 40 + 40)}`))
}

/** Sorted, so that equal sets have equal bytes. */
function packed(addresses: ReadonlySet<string>) {
  const ordered = [...addresses].sort()
  return {
    addresses: Buffer.from(ordered.map((address) => address.slice(2)).join(''), 'hex'),
    sha256: listSha256(ordered),
    addressCount: ordered.length,
  }
}

/** SHA-256 of the addresses, each followed by a line feed. */
export function listSha256(ordered: readonly string[]) {
  return createHash('sha256')
    .update(`${ordered.join('\n')}\n`)
    .digest()
}
