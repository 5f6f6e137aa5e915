import type { Address, Hex } from '@purser/protocol'
import { createLogReader } from './logs.ts'
import { readHex, readQuantity } from './read.ts'
import type { Rpc } from './rpc.ts'

/** Finds the newest transaction in which a contract logged this event. Searches the whole chain, so the chain must be short. */
export function createFindEvent(rpc: Rpc): (address: Address, topics: readonly Hex[]) => Promise<Hex | undefined> {
  const logs = createLogReader()
  return async (address, topics) => {
    const to = readQuantity(await rpc.result('eth_blockNumber', []), 'block number')
    for await (const piece of logs.newestFirst(rpc, { address, topics }, { from: 0n, to })) {
      const newest = piece.at(-1)
      if (newest !== undefined) return readHex(newest.transactionHash, 'log')
    }
    return undefined
  }
}
