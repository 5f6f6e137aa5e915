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
import { holdCursor, withdraw } from './store-scan.ts'
import { hasConfirmedAbove, lockRowsAbove } from './transaction-store.ts'

/** Headers in one request on the way back. */
const stepMost = 32

interface ForkDeps extends Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'screening'> {
  readonly reads: Pick<BlockReads, 'headers'> & Pick<ConfirmedReads, 'finalBlock' | 'isReplaced'>
}

/** Whether one of these headers contradicts a block that was read before, or does not follow it. */
export function contradicts(headers: readonly BlockHeader[], known: readonly ScannedBlock[]): boolean {
  const hashes = new Map(known.map(({ number, hash }) => [number, hash]))
  return headers.some(({ number, hash, parentHash }) => {
    const [own, parent] = [hashes.get(number), hashes.get(number - 1n)]
    return (own !== undefined && own !== hash) || (parent !== undefined && parent !== parentHash)
  })
}

/**
 * Goes back to the last block that the chain still has: what was seen above it is withdrawn, and the blocks above are read anew. Where the node
 * has every block that is remembered, it contradicts itself, and the problem `chain-unavailable` is thrown; so it is where final blocks or confirmed
 * rows would go and no majority says that they are gone.
 */
export async function rewind(deps: ForkDeps, lease: Lease, network: Network): Promise<void> {
  const ancestor = await findAncestor(deps, network)
  await refuseAlone(deps, network, ancestor)
  await deps.db.tx(async (tx) => {
    const { scanned, checked } = await holdCursor(tx, lease)
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
    deps.log.warn(details, 'a reorganisation: blocks are read anew')
  })
}

/** What is final is taken back by a majority of the nodes alone. Throws while none says so. */
async function refuseAlone({ db, log, reads }: ForkDeps, { name }: Network, ancestor: bigint): Promise<void> {
  const [final, isConfirmed] = [await reads.finalBlock(), await hasConfirmedAbove(db, name, ancestor)]
  if (final !== undefined && final <= ancestor && !isConfirmed) return
  const lowest = await findScannedBlockAbove(db, name, ancestor)
  if (lowest === undefined || (await reads.isReplaced(lowest)) === 'yes') return
  const details = { network: name, block: Number(lowest.number) }
  log.error(details, 'a node takes back a final block and no majority does; nothing is withdrawn')
  throw fail('chain-unavailable', {}, new Error('no majority says that a final block is gone'))
}

/** The newest block of those remembered that the node has too; below them all where it has none. */
async function findAncestor(deps: ForkDeps, network: Network): Promise<bigint> {
  let below = 9_223_372_036_854_775_807n
  for (;;) {
    const known = await listScannedBlocks(deps.db, network.name, { below, limit: stepMost })
    const oldest = known.at(-1)
    if (oldest === undefined) {
      deps.log.error({ network: network.name }, 'a reorganisation reaches below every block that is remembered')
      return below - 1n
    }
    const headers = await deps.reads.headers(known.map(({ number }) => number))
    const same = known.find(({ hash }, index) => headers[index]?.hash === hash)
    if (same !== undefined) return same.number
    below = oldest.number
  }
}
