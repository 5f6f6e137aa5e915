import type { Address, Hex, Network } from '@purser/protocol'
import { isProblem } from '../../platform/errors.ts'
import type { Log, Receipt } from '../port.ts'
import type { CoinArrival, Finality, NodeVerdict, QuorumReads, SentNonce } from './port.ts'
import { heightIn, type Quorum } from './quorum.ts'
import { quantity, readHex, readQuantity, readReceipt, resultOf } from './read.ts'
import { isRecord, type Rpc, type RpcCall, type RpcResponse } from './rpc.ts'

/** Receipt and nonce reads confirmed by a majority. */
export function createReceipts(
  network: Network,
  quorum: Quorum,
): Pick<QuorumReads, 'confirmReceipts' | 'confirmCoinArrival' | 'areInBlocks' | 'isInNoBlock' | 'areNoncesLost'> {
  return {
    async confirmReceipts(receipts, finality = { depth: network.confirmationDepth }) {
      if (receipts.length === 0) return []
      const ask = (rpc: Rpc) => judge(rpc, receipts, { network, finality })
      const ballot = { count: receipts.length, ask }
      return (await quorum.vote(isShallow(network, finality) ? { ...ballot, isAtHead: true } : ballot)).map(verdictOf)
    },
    async confirmCoinArrival(arrival) {
      const decision = await quorum.decide({ depth: network.confirmationDepth })
      if (decision === undefined || arrival.block > decision.block.number) return 'undecided'
      const [isSent, isShared] = await decision.vote({ count: 2, ask: (rpc) => votesOnArrival(rpc, arrival) })
      if (isSent === 'yes') return 'transaction'
      if (isSent === undefined || isShared === undefined) return 'undecided'
      return isShared === 'yes' ? 'block' : 'no'
    },
    async areInBlocks(hashes) {
      if (hashes.length === 0) return []
      const ask = (rpc: Rpc) => votesOnPresence(rpc, hashes)
      return (await quorum.vote({ count: hashes.length, ask, isAtHead: true })).map(verdictOf)
    },
    async isInNoBlock(hashes) {
      const ask = async (rpc: Rpc) => [await voteOnAbsence(rpc, hashes)]
      return verdictOf((await quorum.vote({ count: 1, ask, isAtHead: true }))[0])
    },
    async areNoncesLost(questions) {
      if (questions.length === 0) return []
      const decision = await quorum.decide({ depth: network.confirmationDepth })
      if (decision === undefined) return questions.map(() => 'undecided')
      const ask = (rpc: Rpc) => areLostAt(rpc, questions, decision.at)
      return (await decision.vote({ count: questions.length, ask })).map(verdictOf)
    },
  }
}

/** One node's votes on whether each transaction is in a block. */
async function votesOnPresence(rpc: Rpc, hashes: readonly Hex[]): Promise<readonly (Vote | undefined)[]> {
  const responses = await rpc.batch(hashes.map(receiptCall))
  return hashes.map((hash, index) => {
    const response = responses[index]
    if (response?.ok !== true) return undefined
    return hasReceipt([response], [hash]) ? 'yes' : 'no'
  })
}

/** One node's vote on whether none of the transactions is in a block. */
async function voteOnAbsence(rpc: Rpc, hashes: readonly Hex[]): Promise<Vote> {
  return hasReceipt(await rpc.batch(hashes.map(receiptCall)), hashes) ? 'no' : 'yes'
}

/** Whether honest nodes may still have different blocks at this depth. */
function isShallow({ confirmationDepth }: Network, finality: Finality): boolean {
  return 'depth' in finality && finality.depth < confirmationDepth
}

export function verdictOf(vote: Vote | undefined): NodeVerdict {
  return vote ?? 'undecided'
}

type Vote = 'yes' | 'no'

interface Depth {
  readonly network: Network
  readonly finality: Finality
}

/** One node's vote on each receipt, in one request. No vote when the block is not deep enough at this node, or it does not return this receipt. */
async function judge(rpc: Rpc, receipts: readonly Receipt[], depth: Depth): Promise<readonly (Vote | undefined)[]> {
  const numbers = [...new Set(receipts.map(({ blockNumber }) => blockNumber))]
  const tags = ['latest', ...('tag' in depth.finality ? [depth.finality.tag] : [])]
  const responses = await rpc.batch([
    ...[...tags, ...numbers.map(quantity)].map(blockCall),
    ...receipts.map(({ transactionHash }) => receiptCall(transactionHash)),
  ])
  const [latest, tagged] = responses.slice(0, tags.length).map(numberOf)
  const height = heightIn({ latest, tagged }, depth.network, depth.finality)
  const blocks = new Map(numbers.map((number, index) => [number, resultOf(responses[tags.length + index])]))
  const known = new Map<Hex, Receipt | undefined>()
  const ownOf = ({ transactionHash: hash }: Receipt, index: number): Receipt | undefined => {
    const response = responses[tags.length + numbers.length + index]
    if (!known.has(hash))
      known.set(hash, response?.ok === true ? readReceipt(response.result ?? null, hash) : undefined)
    return known.get(hash)
  }
  return receipts.map((receipt, index) => {
    if (receipt.blockNumber > height) return undefined
    return compare(receipt, ownOf(receipt, index), blocks.get(receipt.blockNumber))
  })
}

/** No vote when the node has the block with the transaction but no receipt: it has not indexed the block yet. */
function compare(receipt: Receipt, own: Receipt | undefined, block: unknown): Vote | undefined {
  if (!isRecord(block) || !Array.isArray(block.transactions)) return undefined
  const isIncluded =
    lower(block.hash) === receipt.blockHash.toLowerCase() &&
    block.transactions.some((hash) => lower(hash) === receipt.transactionHash.toLowerCase())
  if (!isIncluded) return 'no'
  if (own === undefined) return undefined
  return isSameReceipt(own, receipt) ? 'yes' : 'no'
}

/** Whether all receipt fields that features use are alike. A receipt can have thousands of logs, so it compares one by one. */
export function isSameReceipt(left: Receipt, right: Receipt): boolean {
  return (
    left === right ||
    (left.blockNumber === right.blockNumber &&
      left.status === right.status &&
      left.gasUsed === right.gasUsed &&
      left.effectiveGasPrice === right.effectiveGasPrice &&
      left.l1Fee === right.l1Fee &&
      isSameWhereKnown(left.dataGas, right.dataGas) &&
      isSameHex(left.blockHash, right.blockHash) &&
      left.logs.length === right.logs.length &&
      left.logs.every((log, index) => isSameLog(log, right.logs[index])))
  )
}

/** For a field that a node may leave out. */
function isSameWhereKnown(left: bigint | undefined, right: bigint | undefined): boolean {
  return left === undefined || right === undefined || left === right
}

function isSameLog(left: Log, right: Log | undefined): boolean {
  return (
    right !== undefined &&
    isSameHex(left.address, right.address) &&
    isSameHex(left.data, right.data) &&
    left.topics.length === right.topics.length &&
    left.topics.every((topic, index) => isSameHex(topic, right.topics[index]))
  )
}

function isSameHex(left: string, right: string | undefined): boolean {
  return left === right || left.toLowerCase() === right?.toLowerCase()
}

/**
 * One node's votes: whether the transaction itself sent the coin, and whether the rise of the balance suffices otherwise. No vote on the rise when it does
 * not have the state of the block.
 */
async function votesOnArrival(
  rpc: Rpc,
  { account, rawLeast, rawOthers, hash, block }: CoinArrival,
): Promise<readonly (Vote | undefined)[]> {
  const [response, before, after] = await rpc.batch([
    { method: 'eth_getTransactionByHash', params: [hash] },
    { method: 'eth_getBalance', params: [account, quantity(block - 1n)] },
    { method: 'eth_getBalance', params: [account, quantity(block)] },
  ])
  const sent = resultOf(response)
  if (!isRecord(sent) || sent.blockNumber !== quantity(block)) return []
  if (lower(sent.to) === account.toLowerCase() && readQuantity(sent.value, 'transaction value') >= rawLeast)
    return ['yes', 'no']
  const [old, now] = [resultOf(before), resultOf(after)]
  if (old === undefined || now === undefined) return ['no', undefined]
  const moved = await movedByTransactions(rpc, account, block)
  if (moved === undefined) return ['no', undefined]
  const rise = readQuantity(now, 'balance') - readQuantity(old, 'balance')
  return ['no', rise + moved.out - moved.in >= rawOthers + rawLeast ? 'yes' : 'no']
}

/**
 * The coin that an account's own transactions took from it in a block, and what transactions of others themselves sent it, in wei; undefined if the node
 * does not have all of them.
 */
async function movedByTransactions(
  rpc: Rpc,
  account: Address,
  block: bigint,
): Promise<{ readonly in: bigint; readonly out: bigint } | undefined> {
  const found = await rpc.result('eth_getBlockByNumber', [quantity(block), true])
  if (!isRecord(found) || !Array.isArray(found.transactions)) return undefined
  const isAccount = (address: unknown) => lower(address) === account.toLowerCase()
  const touching = found.transactions.filter(isRecord).filter(({ from, to }) => isAccount(from) || isAccount(to))
  if (touching.length === 0) return { in: 0n, out: 0n }
  const hashes = touching.map(({ hash }) => readHex(hash, 'transaction'))
  const responses = await rpc.batch(hashes.map(receiptCall))
  const moved = { in: 0n, out: 0n }
  for (const [index, { value, from, to }] of touching.entries()) {
    const receipt = readReceipt(resultOf(responses[index]) ?? null, hashes[index] ?? '0x')
    if (receipt === undefined) return undefined
    if (isAccount(from)) moved.out += receipt.gasUsed * receipt.effectiveGasPrice + receipt.l1Fee
    if (receipt.status !== 'success' || isAccount(from) === isAccount(to)) continue
    moved[isAccount(from) ? 'out' : 'in'] += readQuantity(value, 'transaction value')
  }
  return moved
}

/**
 * One node's votes. A receipt of any of its hashes means `no`, whatever its block: the transaction may be on chain. A receipt that the node does not
 * deliver takes its vote on that question alone.
 */
async function areLostAt(
  rpc: Rpc,
  questions: readonly SentNonce[],
  at: object,
): Promise<readonly (Vote | undefined)[]> {
  const senders = [...new Set(questions.map(({ sender }) => sender))]
  const hashes = questions.flatMap((question) => question.hashes)
  const responses = await rpc.batch([
    ...senders.map((sender) => ({ method: 'eth_getTransactionCount', params: [sender, at] })),
    ...hashes.map(receiptCall),
  ])
  const [counts, receipts] = [responses.slice(0, senders.length), responses.slice(senders.length)]
  const countOf = new Map(senders.map((sender, index) => [sender, counts[index]]))
  const receiptOf = new Map(hashes.map((hash, index) => [hash, receipts[index]]))
  return questions.map(({ sender, nonce, hashes: own }) => {
    const shown = own.map((hash) => receiptOf.get(hash))
    return voteOf(() => {
      const isMined = hasReceipt(shown, own)
      return !isMined && readQuantity(resultOf(countOf.get(sender)), 'transaction count') > nonce ? 'yes' : 'no'
    })
  })
}

/** No vote where the responses cannot be read. */
function voteOf(read: () => Vote): Vote | undefined {
  try {
    return read()
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return undefined
    throw error
  }
}

function hasReceipt(responses: readonly (RpcResponse | undefined)[], hashes: readonly Hex[]): boolean {
  return hashes.some((hash, index) => readReceipt(resultOf(responses[index]) ?? null, hash) !== undefined)
}

function receiptCall(hash: Hex): RpcCall {
  return { method: 'eth_getTransactionReceipt', params: [hash] }
}

function blockCall(block: string): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [block, false] }
}

function numberOf(response: RpcResponse): bigint {
  const block = resultOf(response)
  return readQuantity(isRecord(block) ? block.number : undefined, 'block number')
}

function lower(value: unknown): string | undefined {
  return typeof value === 'string' ? value.toLowerCase() : undefined
}
