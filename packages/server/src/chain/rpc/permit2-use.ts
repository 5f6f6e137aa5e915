import {
  type Address,
  decodeTransferLog,
  type Hex,
  isPermit2Settle,
  type Network,
  type Permit2Transfer,
  topics,
} from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../errors.ts'
import { isSpent } from '../permit2.ts'
import type { QuorumReads } from '../quorum-port.ts'
import { createLogReader, type LogReader, searchRange } from './logs.ts'
import type { Decision, Quorum } from './quorum.ts'
import { readHex, readLog } from './read.ts'
import { isRecord, type Rpc, type RpcAnswer } from './rpc.ts'

interface Search {
  readonly network: Network
  readonly clock: Clock
  readonly quorum: Quorum
}

interface PermitSearch {
  readonly transfer: Permit2Transfer
  readonly amount: bigint
  readonly since: Date
}

const transactionsPerRequest = 100

/**
 * Finds how a permit's nonce was used. Permit2 does not log it, so the transfers of this amount from payer to receiver since the payment was
 * created are read, and the input of each transaction shows whether it settled this permit. When there is none, the nonce was invalidated or spent
 * for something else. All nodes vote on one block; a node that cannot search has no vote.
 */
export function createPermit2Use({ network, clock, quorum }: Search): Pick<QuorumReads, 'findPermit2Use'> {
  const logs = createLogReader()
  return {
    async findPermit2Use(transfer, { amount, since }) {
      const decision = await quorum.decide({ depth: network.confirmationDepth })
      if (decision === undefined) return { outcome: 'open' }
      const range = searchRange({ network, clock }, { to: decision.block.number, since })
      const ask = async (rpc: Rpc) => [
        await search(rpc, decision, logs.newestFirst(rpc, filterOf(transfer), range), { transfer, amount }),
      ]
      const [vote] = await decision.vote({ count: 1, ask })
      if (vote === undefined) return { outcome: 'open' }
      return vote === 'elsewhere' ? { outcome: vote } : { outcome: 'used', transactionHash: vote }
    },
  }
}

type Vote = Hex | 'elsewhere'

/** Undefined (no vote) when the nonce is not spent at this node. */
async function search(
  rpc: Rpc,
  { at }: Decision,
  pieces: ReturnType<LogReader['newestFirst']>,
  sought: Omit<PermitSearch, 'since'>,
): Promise<Vote | undefined> {
  if (!(await isSpent(rpc, sought.transfer, at))) return undefined
  for await (const logs of pieces) {
    const hashes = logs.flatMap((log) => hashOfTransfer(log, sought.amount) ?? [])
    const hash = await findSettlement(rpc, [...new Set(hashes)].reverse(), sought)
    if (hash !== undefined) return hash
  }
  return 'elsewhere'
}

function filterOf({ token, owner, witness }: Permit2Transfer) {
  return { address: token, topics: [topics.transfer, topicOf(owner), topicOf(witness.to)] }
}

function hashOfTransfer(log: unknown, amount: bigint): Hex | undefined {
  if (!isRecord(log)) throw fail('chain-unavailable', {}, new Error('the node returned a malformed log'))
  return decodeTransferLog(readLog(log))?.value === amount ? readHex(log.transactionHash, 'log') : undefined
}

/** The first of these transactions that settled this permit. */
async function findSettlement(
  rpc: Rpc,
  hashes: readonly Hex[],
  sought: Omit<PermitSearch, 'since'>,
): Promise<Hex | undefined> {
  for (let at = 0; at < hashes.length; at += transactionsPerRequest) {
    const part = hashes.slice(at, at + transactionsPerRequest)
    const answers = await rpc.batch(part.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] })))
    const index = answers.findIndex((answer) => settles(answer, sought))
    if (index >= 0) return part[index]
  }
  return undefined
}

/** Whether the transaction settled the permit. It has a transfer log, so it did not revert; its recipient and its input decide. */
function settles(answer: RpcAnswer, { transfer, amount }: Omit<PermitSearch, 'since'>): boolean {
  const transaction = answer.ok ? answer.result : undefined
  if (!isRecord(transaction) || typeof transaction.input !== 'string')
    throw fail('chain-unavailable', {}, new Error('the node does not have a transaction that it returned a log of'))
  return (
    typeof transaction.to === 'string' &&
    transaction.to.toLowerCase() === transfer.spender.toLowerCase() &&
    isPermit2Settle(transaction.input, transfer, amount)
  )
}

function topicOf(account: Address): Hex {
  return `0x${'0'.repeat(24)}${account.slice(2).toLowerCase()}`
}
