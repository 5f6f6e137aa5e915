import type { Network } from '@purser/protocol'
import type { BlockHeader, BlockReads, ConfirmedReads } from '../../../chain/block-port.ts'
import { fail } from '../../../chain/errors.ts'
import type { Deps } from '../../../platform/ctx.ts'
import {
  findScannedBlockAbove,
  forgetBlocksAbove,
  type Lease,
  listScannedBlocks,
  moveCursor,
  type ScannedBlock,
} from './cursor-store.ts'
import { requireCursor, withdraw } from './store-scan.ts'
import { hasConfirmedAbove, lockRowsAbove } from './transaction-store.ts'

/** Headers per request while rewinding. */
const stepMost = 32

interface ForkDeps extends Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'screening'> {
  readonly reads: Pick<BlockReads, 'headers'> & Pick<ConfirmedReads, 'finalBlock' | 'isReplaced'>
}

/** Whether one of these headers contradicts a block that was read before, or does not extend it. */
export function contradicts(headers: readonly BlockHeader[], known: readonly ScannedBlock[]): boolean {
  const hashes = new Map(known.map(({ number, hash }) => [number, hash]))
  return headers.some(({ number, hash, parentHash }) => {
    const [own, parent] = [hashes.get(number), hashes.get(number - 1n)]
    return (own !== undefined && own !== hash) || (parent !== undefined && parent !== parentHash)
  })
}

/**
 * Rewinds to the last block that the chain still has: rows above it are withdrawn, and the blocks above are read again. If the node has
 * every remembered block, it contradicts itself, and `chain-unavailable` is thrown; likewise if final blocks or confirmed rows would be
 * removed and no majority confirms that they are gone.
 */
export async function rewind(deps: ForkDeps, lease: Lease, network: Network): Promise<void> {
  const ancestor = await findAncestor(deps, network)
  await requireMajority(deps, network, ancestor)
  await deps.db.tx(async (tx) => {
    const { scanned, checked } = await requireCursor(tx, lease)
    if (scanned === null || checked === null || scanned <= ancestor)
      throw fail('chain-unavailable', {}, new Error('the node contradicts itself, or another node'))
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
  if (lowest === undefined || (await reads.isReplaced(lowest)) === 'yes') return
  const details = { network: name, block: Number(lowest.number) }
  log.error(details, 'a node removes a final block without a majority; nothing is withdrawn')
  throw fail('chain-unavailable', {}, new Error('no majority confirms that a final block is gone'))
}

/** The newest remembered block that the node has too; below all of them if it has none. */
async function findAncestor(deps: ForkDeps, network: Network): Promise<bigint> {
  let below = 9_223_372_036_854_775_807n
  for (;;) {
    const known = await listScannedBlocks(deps.db, network.name, { below, limit: stepMost })
    const oldest = known.at(-1)
    if (oldest === undefined) {
      deps.log.error({ network: network.name }, 'a reorganization reaches below every remembered block')
      return below - 1n
    }
    const headers = await deps.reads.headers(known.map(({ number }) => number))
    const same = known.find(({ hash }, index) => headers[index]?.hash === hash)
    if (same !== undefined) return same.number
    below = oldest.number
  }
}
