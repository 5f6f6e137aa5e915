import { type Network, topics } from '@purser/protocol'
import type { MemoTransfers, QuorumReads, TempoTransactionId } from './port.ts'
import type { Quorum } from './quorum.ts'
import { accountTopic, readHead, readLog, readReceipt, resultOf } from './read.ts'
import { verdictOf } from './receipts.ts'
import { isRecord, type Rpc } from './rpc.ts'

/** Seconds of block time that must pass after `validBefore`, because nodes may index receipts late. */
const marginSeconds = 5n

/** Reads the transfers that Tempo transactions made, and whether transactions are lost, confirmed by a majority. */
export function createTempoReads(
  network: Network,
  quorum: Quorum,
): Pick<QuorumReads, 'memoTransfers' | 'tempoTransactionsLost'> {
  return {
    async memoTransfers(transfers) {
      const ask = async (rpc: Rpc) => [await memoTransfersAt(rpc, network, transfers)]
      const [vote] = await quorum.vote({ count: 1, ask })
      if (vote === undefined) return 'undecided'
      const logs: unknown = JSON.parse(vote)
      return Array.isArray(logs) ? logs.map(readLog) : []
    },
    async tempoTransactionsLost(ids) {
      const decision = ids.length === 0 ? undefined : await quorum.decide(network.depositFinality)
      if (decision === undefined) return ids.map(() => 'undecided')
      const { timestampSeconds } = decision.block
      const isOver = ({ validBefore }: TempoTransactionId) => timestampSeconds > validBefore + marginSeconds
      const ask = async (rpc: Rpc) => {
        const calls = ids.map(({ hash }) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
        const responses = await rpc.batch(calls)
        return ids.map((id, index) => {
          const response = responses[index]
          if (response?.ok !== true) return undefined
          const isMined = readReceipt(response.result ?? null, id.hash) !== undefined
          return !isMined && isOver(id) ? 'yes' : 'no'
        })
      }
      return (await decision.vote({ count: ids.length, ask })).map(verdictOf)
    },
  }
}

/**
 * One node's vote: the logs as text. No vote where the block has more than half a MiB of them, while the block is not deep enough, and none without logs while the block is new, since a node may return a block before
 * its logs.
 */
async function memoTransfersAt(
  rpc: Rpc,
  network: Network,
  { hash, token, payer, recipient }: MemoTransfers,
): Promise<string | undefined> {
  const sent = await rpc.result('eth_getTransactionByHash', [hash])
  if (!isRecord(sent) || typeof sent.blockNumber !== 'string' || typeof sent.blockHash !== 'string') return undefined
  const { blockHash, blockNumber } = sent
  const from = payer === undefined ? null : accountTopic(payer)
  const filter = { blockHash, address: [token], topics: [topics.transferWithMemo, from, accountTopic(recipient)] }
  const [latest, block] = await rpc.batch([
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    { method: 'eth_getBlockByNumber', params: [blockNumber, false] },
  ])
  const [logs] = await rpc.batch([{ method: 'eth_getLogs', params: [filter], length: 'short' }])
  const found = resultOf(logs)
  const canonical = resultOf(block)
  if (!isRecord(canonical) || canonical.hash !== blockHash || !Array.isArray(found)) return undefined
  const [head, own] = [readHead(resultOf(latest)), readHead(canonical)]
  if (head.number - own.number + 1n < BigInt(network.confirmationDepth)) return undefined
  const isOwn = (log: unknown): boolean =>
    isRecord(log) && String(log.transactionHash).toLowerCase() === hash.toLowerCase()
  const made = found.filter(isOwn).map(readLog)
  if (made.length === 0 && head.timestampSeconds <= own.timestampSeconds + marginSeconds) return undefined
  return JSON.stringify(made).toLowerCase()
}
