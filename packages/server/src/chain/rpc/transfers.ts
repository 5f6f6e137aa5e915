import { type Hex, type Network, topics } from '@purser/protocol'
import { lower, readBlock, readLogs, readReceipt, readTransfer } from '../blocks/parse.ts'
import type { ConfirmedReads, PlacedBlock, TransferClaim, TransferReceipt } from '../blocks/port.ts'
import type { Quorum } from './quorum.ts'
import { accountTopic, quantity, resultOf } from './read.ts'
import { verdictOf } from './receipts.ts'
import { isRecord, type Rpc, type RpcCall, type RpcResponse } from './rpc.ts'

type Vote = 'yes' | 'no'

/** Milliseconds for which a vote on new transfers waits for late nodes: one that answers just before its time-out must not delay each vote. */
const lateMs = 1_000

/** Transfer reads at the depth for deposits, confirmed by a majority. */
export function createTransferReads(network: Network, quorum: Quorum): ConfirmedReads {
  const decide = () => quorum.decide(network.depositFinality)
  return {
    async newestBlock() {
      const decision = await quorum.decide({ depth: 1 })
      return decision && { ...decision.block, highest: decision.highest }
    },
    finalBlock: async () => (await decide())?.block.number,
    async confirmTransfers(claims) {
      const decision = claims.length === 0 ? undefined : await decide()
      if (decision === undefined) return claims.map(() => 'undecided')
      const ask = (rpc: Rpc) => judge(rpc, claims, decision.block.number)
      return (await decision.vote({ count: claims.length, ask, reportsDenials: true })).map(verdictOf)
    },
    async areInvented(claims) {
      if (claims.length === 0 || quorum.size < 3) return claims.map(() => 'no')
      const ask = async (rpc: Rpc) =>
        (await judge(rpc, claims)).map((vote): Vote | undefined => vote && (vote === 'no' ? 'yes' : 'no'))
      return (await quorum.vote({ count: claims.length, ask, isAtHead: true, lateMs })).map(verdictOf)
    },
    async areFinal(blocks) {
      const decision = blocks.length === 0 ? undefined : await decide()
      if (decision === undefined) return blocks.map(() => 'undecided')
      const final = decision.block.number
      const ask = async (rpc: Rpc) =>
        (await areSame(rpc, blocks)).map((isSame, index): Vote | undefined =>
          isSame === undefined || (blocks[index]?.number ?? 0n) > final ? undefined : isSame ? 'yes' : 'no',
        )
      return (await decision.vote({ count: blocks.length, ask })).map(verdictOf)
    },
    async areReplaced(blocks) {
      if (blocks.length === 0) return []
      const ask = async (rpc: Rpc) =>
        (await areSame(rpc, blocks)).map((isSame): Vote | undefined =>
          isSame === undefined ? undefined : isSame ? 'no' : 'yes',
        )
      // The newest of the blocks may be the head, where honest nodes differ for a moment.
      const newest = blocks.reduce((most, { number }) => (number > most ? number : most), 0n)
      const isAtHead = (index: number) => (blocks[index]?.number ?? 0n) > newest - BigInt(network.confirmationDepth)
      return (await quorum.vote({ count: blocks.length, ask, isAtHead })).map(verdictOf)
    },
  }
}

/** Whether a node has these blocks at their heights; undefined where it has none. It is queried once for each height. */
async function areSame(rpc: Rpc, blocks: readonly PlacedBlock[]): Promise<readonly (boolean | undefined)[]> {
  const numbers = [...new Set(blocks.map(({ number }) => number))]
  const responses = await rpc.batch(
    numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [quantity(number), false] })),
  )
  const known = new Map(numbers.map((number, index) => [number, readBlock(resultOf(responses[index]), number)]))
  return blocks.map(({ number, hash, timestampSeconds }) => {
    const own = known.get(number)
    return own && own.hash === hash && (timestampSeconds ?? own.timestampSeconds) === own.timestampSeconds
  })
}

/**
 * One node's vote on each claim. No vote when the block is not deep enough or its transactions are not indexed yet. Without a `final` height the depth does
 * not matter, and a node with another block at that height has no vote.
 */
async function judge(
  rpc: Rpc,
  claims: readonly TransferClaim[],
  final?: bigint,
): Promise<readonly (Vote | undefined)[]> {
  const heights = [...new Set(claims.map(({ blockNumber }) => blockNumber))]
  const numbers = heights.filter((number) => final === undefined || number <= final)
  const blocks = await rpc.batch(
    numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [quantity(number), false] })),
  )
  const canonical = new Map(numbers.map((number, index) => [number, blockOf(resultOf(blocks[index]), number)]))
  const isInBlock = ({ txHash, blockNumber, blockHash }: TransferClaim): boolean | undefined => {
    const block = canonical.get(blockNumber)
    if (block === undefined || (final === undefined && block.hash !== blockHash)) return undefined
    return block.hash === blockHash && block.transactions.has(txHash)
  }
  const hashes = [...new Set(claims.filter((claim) => isInBlock(claim) === true).map(({ txHash }) => txHash))]
  const responses = await rpc.batch(hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })))
  const receipts = new Map(hashes.map((hash, index) => [hash, receiptIn(responses[index], hash)]))
  const unread = claims.filter((claim) => isInBlock(claim) === true && receipts.get(claim.txHash) === 'unread')
  const shown = await shownByLogs(rpc, unread)
  return claims.map((claim) => {
    const isIncluded = isInBlock(claim)
    if (isIncluded !== true) return isIncluded === false ? 'no' : undefined
    const receipt = receipts.get(claim.txHash)
    if (receipt === 'unread') return shown.has(claim) ? 'yes' : undefined
    if (receipt?.blockHash !== claim.blockHash) return undefined
    return receipt.transfers.some(claim.isOf) ? 'yes' : 'no'
  })
}

/** `unread`: the node does not return this receipt, such as one that is too long. The other claims have their votes. */
function receiptIn(response: RpcResponse | undefined, hash: Hex): TransferReceipt | 'unread' | undefined {
  return response?.ok === true ? readReceipt(response.result, hash) : 'unread'
}

/**
 * Returns the claims that the logs of their blocks show. It requests the token's transfers to the recipient, however long the transaction's receipt is. A
 * transfer without a log proves nothing: nodes may return a block before its logs.
 */
async function shownByLogs(rpc: Rpc, claims: readonly TransferClaim[]): Promise<ReadonlySet<TransferClaim>> {
  const groups = [...Map.groupBy(claims, ({ blockHash, token, to }) => [blockHash, token, to].join(' ')).values()]
  const calls = groups.flatMap(([first]) => (first === undefined ? [] : [transfersCall(first)]))
  const responses = await rpc.batch(calls)
  const shown = groups.flatMap((group, index) => {
    const response = responses[index]
    const [first] = group
    if (response?.ok !== true || first === undefined) return []
    const { blockNumber: number, token } = first
    const transfers = readLogs(response.result, { from: number, to: number, tokens: [token] }).map(readTransfer)
    return group.filter(({ txHash, blockHash, isOf }) =>
      transfers.some((found) => found.txHash === txHash && found.blockHash === blockHash && isOf(found)),
    )
  })
  return new Set(shown)
}

function transfersCall({ blockHash, token, to }: TransferClaim): RpcCall {
  return {
    method: 'eth_getLogs',
    params: [{ blockHash, address: [token], topics: [topics.transfer, null, accountTopic(to)] }],
  }
}

interface CanonicalBlock {
  readonly hash: string
  readonly transactions: ReadonlySet<unknown>
}

/** Undefined when the node does not list the block's transactions. */
function blockOf(value: unknown, number: bigint): CanonicalBlock | undefined {
  const hash = readBlock(value, number)?.hash
  if (hash === undefined || !isRecord(value) || !Array.isArray(value.transactions)) return undefined
  return { hash, transactions: new Set(value.transactions.map(lower)) }
}
