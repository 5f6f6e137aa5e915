import {
  type Address,
  containsPermit2Settle,
  decodeTransferLog,
  type Hex,
  isPermit2Settle,
  type Network,
  type Permit2Transfer,
  permit2SettledTopics,
  sameAddress,
  topics,
} from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../errors.ts'
import type { Permit2Use } from '../facts.ts'
import { isSpent } from '../reads/permit2.ts'
import { createLogReader, type LogReader, searchRange } from './logs.ts'
import type { QuorumReads } from './port.ts'
import type { Decision, Quorum } from './quorum.ts'
import { readHex, readLog, readReceipt } from './read.ts'
import { isRecord, type Rpc, type RpcResponse } from './rpc.ts'

interface Search {
  readonly network: Network
  readonly clock: Clock
  readonly quorum: Quorum
}

interface Sought {
  readonly transfer: Permit2Transfer
  readonly amount: bigint
  /** A transaction that succeeded with a transfer of the amount from payer to receiver. It is read before any log. */
  readonly carrier?: Hex | undefined
}

const transactionsPerRequest = 100

/**
 * Finds how a permit's nonce was used. Permit2 does not log it, so the transfers of this amount from payer to receiver since the payment was
 * created are read, and the input of each transaction shows whether it settled this permit. Anybody may also send an exact permit to its proxy through
 * another contract: then the input contains the settlement, and the logs have as many settlements of such permits as were made. When there is none,
 * the nonce was invalidated or spent for something else. All nodes vote on one block; a node that cannot search has no vote.
 */
export function createPermit2Use({ network, clock, quorum }: Search): Pick<QuorumReads, 'findPermit2Use'> {
  const logs = createLogReader()
  return {
    async findPermit2Use(transfer, { amount, carrier, ...within }) {
      const decision = await quorum.decide({ depth: network.confirmationDepth })
      if (decision === undefined) return { outcome: 'open' }
      const range = searchRange({ network, clock }, { to: decision.block.number, ...within })
      const ask = async (rpc: Rpc) => [
        await search(rpc, decision, logs.newestFirst(rpc, filterOf(transfer), range), { transfer, amount, carrier }),
      ]
      const [vote] = await decision.vote({ count: 1, ask })
      if (vote === undefined) return { outcome: 'open' }
      return useOf(vote)
    },
  }
}

/** The hash of the transaction, followed by the indexes of the proxy's logs if it called the proxy through another contract. */
type Settlement = Hex | `${Hex} ${string}`
type Vote = Settlement | 'elsewhere'

function useOf(vote: Vote): Permit2Use {
  if (vote === 'elsewhere') return { outcome: vote }
  const transactionHash: Hex = `0x${vote.slice(2, 66)}`
  const logIndexes = vote.slice(67)
  if (logIndexes === '') return { outcome: 'used', transactionHash }
  return { outcome: 'used', transactionHash, logIndexes: logIndexes.split(',').map(Number) }
}

/** Undefined (no vote) when the nonce is not spent at this node. */
async function search(
  rpc: Rpc,
  { at }: Decision,
  pieces: ReturnType<LogReader['newestFirst']>,
  sought: Sought,
): Promise<Vote | undefined> {
  if (!(await isSpent(rpc, sought.transfer, at))) return undefined
  const { carrier } = sought
  const carried = carrier === undefined ? undefined : await findSettlement(rpc, [carrier], sought)
  if (carried !== undefined) return carried
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

/** The first of these transactions that settled this permit, or may have settled it through another contract. */
async function findSettlement(rpc: Rpc, hashes: readonly Hex[], sought: Sought): Promise<Settlement | undefined> {
  for (let at = 0; at < hashes.length; at += transactionsPerRequest) {
    const part = hashes.slice(at, at + transactionsPerRequest)
    const responses = await rpc.batch(part.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] })))
    for (const [index, response] of responses.entries()) {
      const [hash, way] = [part[index], wayOf(response, sought)]
      if (hash === undefined || way === undefined) continue
      if (way === 'straight') return hash
      const logIndexes = await logIndexesIn(rpc, hash, sought)
      if (logIndexes.length > 0) return `${hash} ${logIndexes.join(',')}`
    }
  }
  return undefined
}

/**
 * The indexes of the proxy's logs, in the transaction's receipt, that follow this amount's transfer from payer to receiver. The transfer of an
 * authorization (EIP-3009) pays for that authorization: a settlement of another token, which logs nothing, can stand behind it.
 */
async function logIndexesIn(rpc: Rpc, hash: Hex, { transfer, amount }: Sought): Promise<number[]> {
  const { owner, spender, token, witness } = transfer
  const receipt = readReceipt(await rpc.result('eth_getTransactionReceipt', [hash]), hash)
  if (receipt === undefined)
    throw fail('chain-unavailable', {}, new Error('the node does not have the receipt of a transaction'))
  return receipt.logs.flatMap((log, index) => {
    if (!sameAddress(log.address, spender) || !permit2SettledTopics.some((topic) => topic === log.topics[0])) return []
    const before = receipt.logs.slice(0, index)
    const foreign = before.findLastIndex(({ address }) => !sameAddress(address, token))
    const own = before.slice(foreign + 1)
    const at = own.findLastIndex((one) => decodeTransferLog(one) !== undefined)
    const [used, move] = [own[at - 1], own[at]]
    if (move === undefined || used?.topics[0] === topics.authorizationUsed) return []
    const moved = decodeTransferLog(move)
    if (moved === undefined || moved.value !== amount) return []
    return sameAddress(moved.from, owner) && sameAddress(moved.to, witness.to) ? [index] : []
  })
}

/**
 * Returns the way in which the transaction can have settled the permit. It has a transfer log, so it did not revert. Sent straight to the proxy it
 * settled what its input says.
 */
function wayOf(response: RpcResponse, { transfer, amount }: Sought): 'straight' | 'through' | undefined {
  const transaction = response.ok ? response.result : undefined
  if (!isRecord(transaction) || typeof transaction.input !== 'string')
    throw fail('chain-unavailable', {}, new Error('the node does not have a transaction that it returned a log of'))
  if (typeof transaction.to === 'string' && transaction.to.toLowerCase() === transfer.spender.toLowerCase())
    return isPermit2Settle(transaction.input, transfer, amount) ? 'straight' : undefined
  return containsPermit2Settle(transaction.input, transfer, amount) ? 'through' : undefined
}

function topicOf(account: Address): Hex {
  return `0x${'0'.repeat(24)}${account.slice(2).toLowerCase()}`
}
