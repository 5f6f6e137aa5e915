import type { Address, Hex, Network } from '@purser/protocol'
import { fail } from './errors.ts'
import { isLapsed } from './lapsed.ts'
import type { Chain, Receipt } from './port.ts'
import { readQuantity, readReceipt } from './read.ts'
import { isRecord, type NodeRpc, type Rpc, type RpcAnswer, type RpcCall } from './rpc.ts'

/** What money is counted by is believed of no node alone where there are several: those that are well must say the same. */
export function createBeliefs(
  network: Network,
  rpc: NodeRpc,
): Pick<Chain, 'believe' | 'isNonceLost' | 'authorizationLapsed'> {
  const askEach = async <T>(ask: (one: Rpc) => Promise<T>): Promise<T[]> => {
    const asked = await Promise.allSettled(rpc.well().map(ask))
    const told = asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
    const refused = asked.find((answer) => answer.status === 'rejected')
    if (told.length === 0) throw refused?.reason ?? fail('chain-unavailable', {}, new Error('no node is there'))
    return told
  }
  return {
    async believe(receipts) {
      if (receipts.length === 0) return []
      const told = await askEach((one) => judge(one, receipts))
      return receipts.map((_, index) => {
        const verdicts = told.map((verdict) => verdict[index]).filter((verdict) => verdict !== 'behind')
        return verdicts.length > 0 && verdicts.every((verdict) => verdict === 'yes')
      })
    },
    async isNonceLost(sender, nonce, hashes) {
      const told = await askEach((one) => isLostAt(one, network, { sender, nonce, hashes }))
      return told.every((isLost) => isLost)
    },
    async authorizationLapsed(asked) {
      const told = await askEach((one) => isLapsed(one, network, asked))
      return told.every((lapsed) => lapsed)
    },
  }
}

type Verdict = 'yes' | 'no' | 'behind'

/** Whether the node has each receipt as it was told, of a block that it has at that height and that holds the transaction. */
async function judge(one: Rpc, receipts: readonly Receipt[]): Promise<readonly Verdict[]> {
  const numbers = [...new Set(receipts.map(({ blockNumber }) => blockNumber))]
  const [head, ...answers] = await one.batch([
    { method: 'eth_blockNumber', params: [] },
    ...receipts.map(({ transactionHash }) => receiptCall(transactionHash)),
    ...numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [quantity(number), false] })),
  ])
  const height = readQuantity(resultOf(head), 'block number')
  const blocks = new Map(numbers.map((number, index) => [number, resultOf(answers[receipts.length + index])]))
  return receipts.map((receipt, index) => {
    if (receipt.blockNumber > height) return 'behind'
    const own = readReceipt(resultOf(answers[index]) ?? null, receipt.transactionHash)
    const isSame = own !== undefined && wordsOf(own) === wordsOf(receipt)
    return isSame && holds(blocks.get(receipt.blockNumber), receipt) ? 'yes' : 'no'
  })
}

function holds(block: unknown, { blockHash, transactionHash }: Receipt): boolean {
  if (!isRecord(block) || !Array.isArray(block.transactions)) return false
  return (
    lower(block.hash) === blockHash.toLowerCase() &&
    block.transactions.some((hash) => lower(hash) === transactionHash.toLowerCase())
  )
}

/** Everything that a feature decides by. */
function wordsOf({ blockHash, blockNumber, status, gasUsed, logs }: Receipt): string {
  const told = logs.map(({ address, topics, data }) => [address, ...topics, data].join(' '))
  return [blockHash, blockNumber, status, gasUsed, ...told].join('\n').toLowerCase()
}

interface Nonce {
  readonly sender: Address
  readonly nonce: bigint
  readonly hashes: readonly Hex[]
}

async function isLostAt(one: Rpc, network: Network, { sender, nonce, hashes }: Nonce): Promise<boolean> {
  const [head, ...receipts] = await one.batch([{ method: 'eth_blockNumber', params: [] }, ...hashes.map(receiptCall)])
  const isMined = receipts.some((answer, index) => {
    const hash = hashes[index]
    return hash !== undefined && readReceipt(resultOf(answer) ?? null, hash) !== undefined
  })
  const deep = readQuantity(resultOf(head), 'block number') - BigInt(network.confirmationDepth) + 1n
  if (isMined || deep < 0n) return false
  const at = network.confirmationDepth === 1 ? 'latest' : quantity(deep)
  return readQuantity(await one.result('eth_getTransactionCount', [sender, at]), 'transaction count') > nonce
}

function receiptCall(hash: Hex): RpcCall {
  return { method: 'eth_getTransactionReceipt', params: [hash] }
}

function resultOf(answer: RpcAnswer | undefined): unknown {
  if (answer?.ok !== true) throw fail('chain-unavailable', {}, new Error(answer?.message ?? 'no answer'))
  return answer.result
}

function lower(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toLowerCase() : undefined
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}
