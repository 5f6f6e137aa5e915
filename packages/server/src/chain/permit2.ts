import {
  type Address,
  decodeTransferLog,
  decodeUint256,
  encodeBalanceOf,
  encodeNonceBitmap,
  encodePermit2Allowance,
  encodePermit2Settle,
  type Hex,
  isNonceSpent,
  isPermit2Settle,
  type Network,
  type Permit2Transfer,
  permit2Address,
  topics,
} from '@purser/protocol'
import type { Clock } from '../platform/clock.ts'
import { fail } from './errors.ts'
import type { Permit2Facts, Permit2Probe, Permit2Use } from './port.ts'
import { readHex, readLog, readQuantity } from './read.ts'
import { isRecord, type Rpc, type RpcAnswer, type RpcCall } from './rpc.ts'

/** Gas for the trial: what settling alone would allow it, or a wallet could pass here and run out of gas there. */
const trialGas = 460_000

/**
 * Looks at one Permit2 payment in one request to the node. Each question is a call of its own, so that a payer's contract can spoil
 * nothing but its own trial. A no of the trial that the readings do not explain is asked again as of the pending block, since an idle
 * chain's latest block is behind the clock.
 */
export async function inspectPermit2(rpc: Rpc, probe: Permit2Probe): Promise<Permit2Facts> {
  const first = await inspectAsOf(rpc, probe, 'latest')
  if (isConclusive(probe, first)) return first
  return inspectAsOf(rpc, probe, 'pending')
}

function isConclusive({ settlement }: Permit2Probe, facts: Permit2Facts): boolean {
  const { amount } = settlement
  return facts.trial.ok || facts.nonceUsed || !facts.proxyDeployed || facts.balance < amount || facts.allowance < amount
}

async function inspectAsOf(rpc: Rpc, probe: Permit2Probe, block: 'latest' | 'pending'): Promise<Permit2Facts> {
  const { owner, token, nonce } = probe.settlement.transfer
  const answers = await rpc.batch([...readings(probe, block), trial(probe, block)])
  const [proxy, payer, balance, allowance, bitmap, settle] = answers
  if (settle === undefined) throw fail('chain-unavailable', {}, new Error('no answer'))
  return {
    proxyDeployed: codeOf(proxy) !== '0x',
    payerHasCode: codeOf(payer) !== '0x',
    balance: wordOf(balance, `balance of ${owner} in ${token}`),
    allowance: wordOf(allowance, `allowance of ${owner} in ${token}`),
    nonceUsed: isNonceSpent(wordOf(bitmap, 'nonce bitmap'), nonce),
    trial: settle.ok ? { ok: true } : { ok: false, data: settle.data ?? null },
  }
}

function readings({ settlement }: Permit2Probe, block: string): RpcCall[] {
  const { owner, token, spender, nonce } = settlement.transfer
  return [
    { method: 'eth_getCode', params: [spender, block] },
    { method: 'eth_getCode', params: [owner, block] },
    ethCall({ to: token, data: encodeBalanceOf(owner) }, block),
    ethCall({ to: token, data: encodePermit2Allowance(owner) }, block),
    ethCall({ to: permit2Address, data: encodeNonceBitmap(owner, nonce) }, block),
  ]
}

function trial({ settlement, settler }: Permit2Probe, block: string): RpcCall {
  const data = encodePermit2Settle(settlement)
  return ethCall({ from: settler, to: settlement.transfer.spender, data, gas: `0x${trialGas.toString(16)}` }, block)
}

function ethCall(call: Readonly<Record<string, string>>, block: string): RpcCall {
  return { method: 'eth_call', params: [call, block] }
}

function codeOf(answer: RpcAnswer | undefined): Hex {
  return readHex(answer?.ok === true ? answer.result : undefined, 'code')
}

/** One word; a contract that is not there answers `0x`, which reads as nothing allowed and nothing used. */
function wordOf(answer: RpcAnswer | undefined, what: string): bigint {
  const result = readHex(answer?.ok === true ? answer.result : undefined, what)
  if (result === '0x') return 0n
  try {
    return decodeUint256(result)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

export interface Permit2Search {
  readonly network: Network
  readonly rpc: Rpc
  readonly clock: Clock
}

const blocksPerQueryMax = 5_000n
const marginBlocks = 5_000n
const transactionsPerRequest = 100

/**
 * What became of a permit's nonce, at the network's confirmation depth. Permit2 leaves no log of it, so the transfers of this amount from
 * the payer to the receiver are read back to before the payment was there, and the transaction that carried each says whether
 * it settled this very permit. A nonce that is gone without one was given up, or spent for something else.
 */
export function findPermit2Use(
  search: Permit2Search,
  transfer: Permit2Transfer,
  options: { readonly amount: bigint; readonly since: Date },
): Promise<Permit2Use> {
  return search.rpc.onOneNode((rpc) => searchOneNode({ ...search, rpc }, transfer, options))
}

async function searchOneNode(
  { network, rpc, clock }: Permit2Search,
  transfer: Permit2Transfer,
  { amount, since }: { readonly amount: bigint; readonly since: Date },
): Promise<Permit2Use> {
  const latest = readQuantity(await rpc.result('eth_blockNumber', []), 'block number')
  const head = latest - BigInt(network.confirmationDepth) + 1n
  if (head < 0n || !(await isSpent(rpc, transfer, quantity(head)))) return { outcome: 'open' }
  const ageMs = Math.max(0, clock.now().getTime() - since.getTime())
  const age = BigInt(Math.ceil(ageMs / network.blockTimeMs)) * 2n + marginBlocks
  const first = head > age ? head - age : 0n
  for (let to = head; to >= first; to -= blocksPerQueryMax) {
    const from = to - blocksPerQueryMax + 1n > first ? to - blocksPerQueryMax + 1n : first
    const hashes = await transfersBetween(rpc, transfer, { amount, from, to })
    const transactionHash = await settlingOne(rpc, hashes, transfer, amount)
    if (transactionHash !== undefined) return { outcome: 'used', transactionHash }
  }
  return { outcome: 'elsewhere' }
}

/** Whether the nonce is used or given up, as of this block. */
export async function isSpent(
  rpc: Rpc,
  { owner, nonce }: Pick<Permit2Transfer, 'owner' | 'nonce'>,
  block: string,
): Promise<boolean> {
  const call = ethCall({ to: permit2Address, data: encodeNonceBitmap(owner, nonce) }, block)
  return isNonceSpent(wordOf(await rpc.call(call.method, call.params), 'nonce bitmap'), nonce)
}

/** Hashes of the transactions with such a transfer, newest first. A node that is behind the range is not believed. */
async function transfersBetween(
  rpc: Rpc,
  { token, owner, witness }: Permit2Transfer,
  { amount, from, to }: { readonly amount: bigint; readonly from: bigint; readonly to: bigint },
): Promise<Hex[]> {
  const filter = { fromBlock: quantity(from), toBlock: quantity(to), address: token }
  const [logs, height] = await rpc.batch([
    { method: 'eth_getLogs', params: [{ ...filter, topics: [topics.transfer, topicOf(owner), topicOf(witness.to)] }] },
    { method: 'eth_blockNumber', params: [] },
  ])
  if (logs?.ok !== true || !Array.isArray(logs.result) || height?.ok !== true)
    throw fail('chain-unavailable', {}, new Error('the node gave no list of logs'))
  if (readQuantity(height.result, 'block number') < to)
    throw fail('chain-unavailable', {}, new Error('the node is behind'))
  const hashes = logs.result.flatMap((log: unknown) => hashOfTransfer(log, amount) ?? [])
  return [...new Set(hashes)].reverse()
}

function hashOfTransfer(log: unknown, amount: bigint): Hex | undefined {
  if (!isRecord(log)) throw fail('chain-unavailable', {}, new Error('the node gave no log'))
  return decodeTransferLog(readLog(log))?.value === amount ? readHex(log.transactionHash, 'log') : undefined
}

/** The first of these transactions that settled this very permit. */
async function settlingOne(
  rpc: Rpc,
  hashes: readonly Hex[],
  transfer: Permit2Transfer,
  amount: bigint,
): Promise<Hex | undefined> {
  for (let at = 0; at < hashes.length; at += transactionsPerRequest) {
    const part = hashes.slice(at, at + transactionsPerRequest)
    const answers = await rpc.batch(part.map((hash) => ({ method: 'eth_getTransactionByHash', params: [hash] })))
    const index = answers.findIndex((answer) => settles(answer, transfer, amount))
    if (index >= 0) return part[index]
  }
  return undefined
}

/** Its transfer is in a log, so it did not revert: what it was sent to and with says the rest. */
function settles(answer: RpcAnswer, transfer: Permit2Transfer, amount: bigint): boolean {
  const transaction = answer.ok ? answer.result : undefined
  if (!isRecord(transaction) || typeof transaction.input !== 'string')
    throw fail('chain-unavailable', {}, new Error('the node does not know a transaction that it gave a log of'))
  return (
    typeof transaction.to === 'string' &&
    transaction.to.toLowerCase() === transfer.spender.toLowerCase() &&
    isPermit2Settle(transaction.input, transfer, amount)
  )
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`
}

function topicOf(account: Address): Hex {
  return `0x${'0'.repeat(24)}${account.slice(2).toLowerCase()}`
}
