import {
  type Address,
  bytesToHex,
  type Hex,
  keccak256,
  type Network,
  sameAddress,
  topics,
  utf8,
} from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import { fail } from '../errors.ts'
import type { SentCall } from '../lanes/port.ts'
import { createLogReader, type LogRange, type LogReader, searchRange } from './logs.ts'
import type { QuorumReads, SentCallId } from './port.ts'
import type { Decision, Quorum } from './quorum.ts'
import { accountTopic, quantity, readHex, readQuantity, resultOf } from './read.ts'
import { isRecord, type Rpc, type Wait } from './rpc.ts'
import { searchNodes } from './search-nodes.ts'

interface Search {
  readonly network: Network
  readonly clock: Clock
  readonly quorum: Pick<Quorum, 'needed' | 'decide'>
  readonly wait: Wait | undefined
}

/** Largest accepted difference between block times and the clock of this process. */
const clockSkewMs = 300_000

const approvalTopic = bytesToHex(keccak256(utf8('Approval(address,address,uint256)')))

/**
 * Finds a transaction of an account by its calls. Any node may report candidates, by the account's nonce or by the account's token events; a
 * majority must confirm that a candidate makes these calls. A node without historical state is searched only by logs, which do not show
 * transactions that move only native coin.
 */
export function createSameCall(search: Search): Pick<QuorumReads, 'findSameCall'> {
  const logs = createLogReader()
  return {
    async findSameCall(call, { since, isOurs, stopped: until, onRemaining }) {
      const decision = await search.quorum.decide({ depth: search.network.confirmationDepth })
      if (decision === undefined) throw fail('chain-unavailable', {}, new Error('nodes agree on no block'))
      const range = searchRange(search, { to: decision.block.number, since })
      return searchNodes(decision.nodes, {
        needed: search.quorum.needed,
        wait: search.wait,
        until,
        onRemaining,
        async search(rpc, stopped) {
          const candidates = await findCandidates(rpc, logs, { call, range: { ...range, stopped }, since })
          stopped.throwIfAborted()
          const known = await isOurs(candidates)
          for (const hash of candidates.filter((one) => !known.has(one))) {
            stopped.throwIfAborted()
            if (await isConfirmed(decision, hash, call)) return hash
          }
          return undefined
        },
      })
    },
  }
}

/**
 * The account's transactions with these calls at this node, the one at the nonce first. Excludes those mined before `since`, which belong to
 * something else.
 */
async function findCandidates(
  rpc: Rpc,
  logs: LogReader,
  { call, range, since }: { readonly call: SentCallId; readonly range: LogRange; readonly since: Date },
): Promise<Hex[]> {
  const oldestMs = BigInt(since.getTime() - clockSkewMs)
  const candidates = new Set<Hex>()
  const seen = new Set<Hex>()
  const consider = async (transaction: unknown): Promise<void> => {
    if (!isRecord(transaction) || !isSentCall(transaction, call)) return
    if ((await minedAtMs(rpc, transaction)) >= oldestMs) candidates.add(readHex(transaction.hash, 'transaction hash'))
  }
  await consider(
    await findAtNonce(rpc, call, range).catch((error: unknown) => {
      // The node does not have the historical state.
      if (isProblem(error, 'chain-unavailable')) return undefined
      throw error
    }),
  )
  const filter = { topics: [[topics.transfer, approvalTopic], accountTopic(call.sender)] }
  for await (const piece of logs.newestFirst(rpc, filter, range))
    for (const log of piece) {
      range.stopped?.throwIfAborted()
      const hash = readHex(log.transactionHash, 'log')
      if (!seen.has(hash)) await consider(await rpc.result('eth_getTransactionByHash', [hash]))
      seen.add(hash)
    }
  return [...candidates]
}

/** The transaction at the account's nonce if it makes these calls, otherwise undefined. */
async function findAtNonce(rpc: Rpc, call: SentCallId, range: LogRange): Promise<unknown> {
  const isUsedAt = async (block: bigint): Promise<boolean> => {
    const count = await rpc.result('eth_getTransactionCount', [call.sender, quantity(block)])
    return readQuantity(count, 'transaction count') > call.nonce
  }
  let [unused, used] = [range.from, range.to]
  if ((await isUsedAt(unused)) || !(await isUsedAt(used))) return undefined
  while (used - unused > 1n) {
    const middle = (used + unused) / 2n
    if (await isUsedAt(middle)) used = middle
    else unused = middle
  }
  const block = await rpc.result('eth_getBlockByNumber', [quantity(used), true])
  const transactions = isRecord(block) && Array.isArray(block.transactions) ? block.transactions : []
  return transactions.find((one) => isSentCall(one, call) && readQuantity(one.nonce, 'nonce') === call.nonce)
}

async function minedAtMs(rpc: Rpc, { blockNumber }: Readonly<Record<string, unknown>>): Promise<bigint> {
  const block = await rpc.result('eth_getBlockByNumber', [quantity(readQuantity(blockNumber, 'block number')), false])
  return readQuantity(isRecord(block) ? block.timestamp : undefined, 'block timestamp') * 1_000n
}

async function isConfirmed(decision: Decision, hash: Hex, call: SentCallId): Promise<boolean> {
  const ask = async (rpc: Rpc): Promise<readonly ('yes' | 'no')[]> => {
    const [response] = await rpc.batch([{ method: 'eth_getTransactionByHash', params: [hash] }])
    return [isSentCall(resultOf(response), call) ? 'yes' : 'no']
  }
  return (await decision.vote({ count: 1, ask }))[0] === 'yes'
}

/** Whether the transaction is of the account, in a block, and makes these calls in this order. */
function isSentCall(transaction: unknown, { sender, calls }: SentCallId): boolean {
  if (!isRecord(transaction) || typeof transaction.from !== 'string' || typeof transaction.blockHash !== 'string')
    return false
  if (!sameAddress(transaction.from as Address, sender)) return false
  const made = Array.isArray(transaction.calls) ? transaction.calls : [transaction]
  return made.length === calls.length && calls.every((call, index) => isSameCall(made[index], call))
}

function isSameCall(made: unknown, { to, data, value }: SentCall): boolean {
  if (!isRecord(made) || !isRecipient(made.to ?? null, to)) return false
  const input = made.input ?? made.data ?? '0x'
  return (
    readHex(input, 'call data').toLowerCase() === data.toLowerCase() &&
    readQuantity(made.value ?? '0x0', 'value') === value
  )
}

function isRecipient(made: unknown, to: Address | null): boolean {
  if (to === null) return made === null
  return typeof made === 'string' && sameAddress(made as Address, to)
}
