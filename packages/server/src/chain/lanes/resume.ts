import type { Address } from '@purser/protocol'
import type { LaneKey } from './nonce-store.ts'
import type { LaneParts } from './parts.ts'
import { sendCovered } from './send.ts'
import { listFinalRaw, listLowestOpen, markUnsent } from './store.ts'

/**
 * What a process does first with lanes of a shard that it leased: what has no outcome is sent again at once, whenever the process before it
 * sent it, and a chain that is behind what was final (a dev chain after a crash) gets those bytes again.
 */
export async function resumeLanes(parts: LaneParts, senders: readonly Address[]): Promise<void> {
  const { deps, chain, held } = parts
  const network = chain.network.name
  await markUnsent(deps.db, held, network, senders)
  const places = await listLowestOpen(deps.db, network, senders)
  const { transactionCounts } = await chain.watch(
    places.map(({ sender }) => sender),
    [],
  )
  for (const { sender, lowest } of places) {
    const count = transactionCounts.get(sender)
    if (count !== undefined && count < lowest) await fillGap(parts, { network, sender }, { count, lowest })
  }
}

/** Sends final transactions again where the chain is behind their nonces: after a deep reorganisation, or a dev chain restored from a copy. */
export async function fillGap(
  parts: LaneParts,
  lane: LaneKey,
  { count, lowest }: { readonly count: bigint; readonly lowest: bigint },
): Promise<void> {
  const { db, log } = parts.deps
  const facts = { ...lane, chainNonce: count.toString(), ours: lowest.toString() }
  log.warn(facts, 'the chain is behind the lane; stored transactions are sent again')
  await sendCovered(
    parts,
    (await listFinalRaw(db, lane, count)).map(({ raw }) => raw),
  )
}
