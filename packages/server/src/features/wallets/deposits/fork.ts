import type { Network } from '@purser/protocol'
import type { BlockHeader, BlockReads } from '../../../chain/block-port.ts'
import { fail } from '../../../chain/errors.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { forgetBlocksAbove, type Lease, listScannedBlocks, moveCursor, type ScannedBlock } from './cursor-store.ts'
import { holdCursor, withdraw } from './store-scan.ts'
import { lockRowsAbove } from './transaction-store.ts'

/** Headers in one request on the way back. */
const stepMost = 32

interface ForkDeps extends Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'screening'> {
  readonly reads: Pick<BlockReads, 'headers'>
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
 * has every block that is remembered, it contradicts itself, and the problem `chain-unavailable` is thrown.
 */
export async function rewind(deps: ForkDeps, lease: Lease, network: Network): Promise<void> {
  const ancestor = await findAncestor(deps, network)
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
