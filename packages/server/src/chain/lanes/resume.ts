import type { Address } from '@purser/protocol'
import { listFinalRaw } from './recovery-store.ts'
import { type LaneParts, sendCovered } from './send.ts'
import { type LaneKey, listLowestOpen, markUnsent } from './store.ts'

/**
 * Resumes the lanes of a newly leased shard. Sends every unmined transaction again at once, whenever it was last sent, and sends final transactions
 * again to a chain that lost them (a dev chain after a crash).
 */
export async function resumeLanes(parts: LaneParts, senders: readonly Address[]): Promise<void> {
  const { deps, chain, leased } = parts
  const network = chain.network.name
  await markUnsent(deps.db, leased, network, senders)
  const places = await listLowestOpen(deps.db, network, senders)
  const { transactionCounts } = await chain.watch(
    places.map(({ sender }) => sender),
    [],
  )
  for (const { sender, lowest } of places) {
    const count = transactionCounts.get(sender)
    if (count !== undefined && count < lowest) await fillGap(parts, { network, sender }, lowest)
  }
}

/**
 * Sends final transactions again when the chain is behind their nonces: after a deep reorganization, or when a dev chain was restored from a copy. A
 * majority of the nodes decides whether it is, since one node that counts too few would have them sent in every pass.
 */
export async function fillGap(parts: LaneParts, lane: LaneKey, lowest: bigint): Promise<void> {
  const count = await parts.chain.transactionCount(lane.sender)
  if (count >= lowest) return
  const { db, log } = parts.deps
  const details = { ...lane, chainNonce: count.toString(), ours: lowest.toString() }
  log.warn(details, 'the chain is behind the lane; stored transactions are sent again')
  await sendCovered(
    parts,
    (await listFinalRaw(db, lane, count)).map(({ raw }) => raw),
  )
}
