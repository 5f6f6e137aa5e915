import type { Network } from '@purser/protocol'
import type { BlockHeader, ConfirmedReads } from '../../../chain/blocks/port.ts'
import { fail } from '../../../chain/errors.ts'
import type { Deps } from '../ports.ts'
import {
  findScannedBlockAbove,
  forgetBlocksAbove,
  listScannedBlocks,
  moveCursor,
  type ScannedBlock,
  type WatcherLease,
} from './cursor-store.ts'
import { requireCursor, withdraw } from './store-scan.ts'
import { hasConfirmedAbove, lockRowsAbove } from './transaction-store.ts'

/** Blocks per vote while rewinding. */
const stepMost = 32

interface ForkDeps extends Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'screening'> {
  readonly reads: Pick<ConfirmedReads, 'finalBlock' | 'areReplaced'>
}

/** The lowest block read before that one of these headers contradicts or does not extend; undefined if there is none. */
export function contradictedIn(headers: readonly BlockHeader[], known: readonly ScannedBlock[]): bigint | undefined {
  const contradicted = known.filter(({ number, hash }) =>
    headers.some(
      (header) =>
        (header.number === number && header.hash !== hash) ||
        (header.number === number + 1n && header.parentHash !== hash),
    ),
  )
  return contradicted.map(({ number }) => number).toSorted((one, other) => (one < other ? -1 : 1))[0]
}

export function contradicts(headers: readonly BlockHeader[], known: readonly ScannedBlock[]): boolean {
  return contradictedIn(headers, known) !== undefined
}

/**
 * Rewinds to the last block that the chain still has, after a node contradicted one of the remembered blocks up to `atMost`: rows above it are
 * withdrawn, and the blocks above are read again. A majority of the nodes decides. Throws `chain-unavailable` if it has the remembered blocks, so
 * that the node lies; if it is undecided; and if final blocks or confirmed rows would be removed and no majority confirms that they are gone.
 */
export async function rewind(deps: ForkDeps, lease: WatcherLease, network: Network, atMost: bigint): Promise<void> {
  const ancestor = await findAncestor(deps, network, atMost)
  await requireMajority(deps, network, ancestor)
  await deps.db.tx(async (tx) => {
    const { scanned, checked } = await requireCursor(tx, lease)
    if (scanned === null || checked === null || scanned <= ancestor)
      throw fail('chain-unavailable', {}, new Error('a node contradicts a majority, or itself'))
    const rows = await lockRowsAbove(tx, network.name, ancestor)
    await withdraw(deps, tx, rows)
    await forgetBlocksAbove(tx, network.name, ancestor)
    await moveCursor(tx, network.name, { scanned: ancestor, checked: checked < ancestor ? checked : ancestor })
    const details = {
      network: network.name,
      from: Number(ancestor + 1n),
      to: Number(scanned),
      transactions: rows.length,
    }
    deps.log.warn(details, 'a reorganization: blocks are read again')
  })
}

/** Only a majority of the nodes can remove final blocks. Throws unless one confirms that they are gone. */
async function requireMajority({ db, log, reads }: ForkDeps, { name }: Network, ancestor: bigint): Promise<void> {
  const [final, isConfirmed] = [await reads.finalBlock(), await hasConfirmedAbove(db, name, ancestor)]
  if (final !== undefined && final <= ancestor && !isConfirmed) return
  const lowest = await findScannedBlockAbove(db, name, ancestor)
  if (lowest === undefined || (await reads.areReplaced([lowest]))[0] === 'yes') return
  const details = { network: name, block: Number(lowest.number) }
  log.error(details, 'a node removes a final block without a majority; nothing is withdrawn')
  throw fail('chain-unavailable', {}, new Error('no majority confirms that a final block is gone'))
}

/** The newest remembered block up to `atMost` that a majority has; below all of them if a majority has others everywhere. */
async function findAncestor({ db, log, reads }: ForkDeps, network: Network, atMost: bigint): Promise<bigint> {
  let below = atMost + 1n
  for (;;) {
    const known = await listScannedBlocks(db, network.name, { below, limit: stepMost })
    const oldest = known.at(-1)
    if (oldest === undefined) {
      log.error({ network: network.name }, 'a reorganization reaches below every remembered block')
      return below - 1n
    }
    const verdicts = await reads.areReplaced(known)
    const same = known.find((_, index) => verdicts[index] === 'no')
    if (same !== undefined && same === known[0] && below > atMost)
      throw fail('chain-unavailable', {}, new Error('a node contradicts a majority'))
    if (same !== undefined) return same.number
    if (verdicts.includes('undecided'))
      throw fail('chain-unavailable', {}, new Error('too few nodes agree on where the chain was reorganized'))
    below = oldest.number
  }
}
