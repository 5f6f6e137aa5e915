import type { Network } from '@purser/protocol'
import type { ConfirmedReads, TransferClaim } from '../block-port.ts'
import { readBlock, readReceipt } from '../read-blocks.ts'
import { quantity } from './quantity.ts'
import type { Decision, Quorum } from './quorum.ts'
import { resultOf, verdictOf } from './receipts.ts'
import type { Rpc } from './rpc.ts'

type Vote = 'yes' | 'no'

/** What a majority says of transfers in blocks that are deep enough for deposits. */
export function createTransferReads(network: Network, quorum: Quorum): ConfirmedReads {
  const decide = () => quorum.decide(network.depositFinality)
  return {
    finalBlock: async () => (await decide())?.block.number,
    async confirmTransfers(claims) {
      const decision = claims.length === 0 ? undefined : await decide()
      if (decision === undefined) return claims.map(() => 'undecided')
      const ask = (rpc: Rpc) => judge(rpc, decision, claims)
      return (await decision.vote({ count: claims.length, ask })).map(verdictOf)
    },
  }
}

/** What one node says of each claim. It has no vote where its canonical block is another one, or where it has no receipt. */
async function judge(
  rpc: Rpc,
  { block: { number: final } }: Decision,
  claims: readonly TransferClaim[],
): Promise<readonly (Vote | undefined)[]> {
  const numbers = [...new Set(claims.map(({ blockNumber }) => blockNumber))].filter((number) => number <= final)
  const hashes = [...new Set(claims.map(({ txHash }) => txHash))]
  const blocks = await rpc.batch(
    numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [quantity(number), false] })),
  )
  const answers = await rpc.batch(hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })))
  const canonical = new Map(numbers.map((number, index) => [number, readBlock(resultOf(blocks[index]), number)?.hash]))
  const receipts = new Map(hashes.map((hash, index) => [hash, readReceipt(resultOf(answers[index]), hash)]))
  return claims.map(({ txHash, blockNumber, blockHash, isOf }) => {
    const receipt = receipts.get(txHash)
    if (receipt?.blockHash !== blockHash || canonical.get(blockNumber) !== blockHash) return undefined
    return receipt.transfers.some(isOf) ? 'yes' : 'no'
  })
}
