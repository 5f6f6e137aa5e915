import type { Network } from '@purser/protocol'
import type { QuorumReads, TempoTransactionId } from '../quorum-port.ts'
import type { Quorum } from './quorum.ts'
import { readReceipt } from './read.ts'
import { verdictOf } from './receipts.ts'
import type { Rpc } from './rpc.ts'

/** Seconds of block time that must pass after `validBefore`, because nodes may index receipts late. */
const marginSeconds = 5n

/** Whether Tempo transactions are lost, confirmed by a majority. */
export function createTempoReads(network: Network, quorum: Quorum): Pick<QuorumReads, 'tempoTransactionsLost'> {
  return {
    async tempoTransactionsLost(ids) {
      const decision = ids.length === 0 ? undefined : await quorum.decide(network.depositFinality)
      if (decision === undefined) return ids.map(() => 'undecided')
      const { timestampSeconds } = decision.block
      const isOver = ({ validBefore }: TempoTransactionId) => timestampSeconds > validBefore + marginSeconds
      const ask = async (rpc: Rpc) => {
        const calls = ids.map(({ hash }) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
        const answers = await rpc.batch(calls)
        return ids.map((id, index) => {
          const answer = answers[index]
          if (answer?.ok !== true) return undefined
          const isMined = readReceipt(answer.result ?? null, id.hash) !== undefined
          return !isMined && isOver(id) ? 'yes' : 'no'
        })
      }
      return (await decision.vote({ count: ids.length, ask })).map(verdictOf)
    },
  }
}
