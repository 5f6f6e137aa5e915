import { type Hex, isHex, topics } from '@purser/protocol'
import { invalidResponse } from '../rpc/read.ts'
import type { Rpc, RpcCall } from '../rpc/rpc.ts'
import { accountOf, lower, type RawTransfer, readLogs, readTransfer } from './parse.ts'
import type { BlockRange, TokenTransfer } from './port.ts'

/** Most accounts in one filter. go-ethereum allows 1,000. */
const accountsMost = 500
/** Most filters in one request. */
const filtersPerRequest = 20

/** A range of one block, with its hash. */
type OneBlock = BlockRange & { readonly hash: Hex }

/** The transfers from some accounts, or to them. */
interface Filter {
  readonly side: 'from' | 'to'
  readonly accounts: readonly Hex[]
}

/**
 * Reads those transfers of a block that some of its transactions made, by the logs of the accounts of interest, some hundred in each filter. The number of requests
 * grows with that of the accounts, so that it is the last way to read a block. Throws `chain-unavailable` if the node refuses the logs of a single account.
 */
export async function scanAccounts(
  rpc: Rpc,
  block: OneBlock,
  transactions: ReadonlySet<string>,
): Promise<readonly TokenTransfer[]> {
  if (block.accounts === undefined) throw invalidResponse(`the node lacks a receipt of block ${block.from}`)
  const sides = ['from', 'to'] as const
  const found: RawTransfer[] = []
  const read = async (filters: Iterable<Filter>): Promise<void> => {
    for (const some of partsOf(filters, filtersPerRequest)) found.push(...(await readFilters(rpc, block, some)))
  }
  await read(filtersOf(block.accounts(), sides))
  // The sender of forwarded money is that of the transfer to the account that forwarded it. The logs of other senders may be too many for a node.
  const { isForwarding = () => false } = block
  const senders = found.map(({ fromTopic }) => fromTopic).filter((topic) => isHex(topic))
  await read(filtersOf(new Set(senders.filter((topic) => isForwarding(accountOf(topic)))), ['to']))
  return found.filter(({ entry }) => transactions.has(lower(entry.transactionHash))).map(readTransfer)
}

function* filtersOf(accounts: Iterable<Hex>, sides: readonly Filter['side'][]): Generator<Filter> {
  for (const some of partsOf(accounts, accountsMost)) for (const side of sides) yield { side, accounts: some }
}

function* partsOf<T>(all: Iterable<T>, most: number): Generator<readonly T[]> {
  let part: T[] = []
  for (const one of all) {
    part.push(one)
    if (part.length < most) continue
    yield part
    part = []
  }
  if (part.length > 0) yield part
}

/** Divides a filter that the node refuses, down to one account. */
async function readFilters(rpc: Rpc, block: OneBlock, filters: readonly Filter[]): Promise<RawTransfer[]> {
  const responses = await rpc.batch(filters.map((filter) => logsCall(block, filter)))
  const found: RawTransfer[] = []
  for (const [index, filter] of filters.entries()) {
    const response = responses[index]
    if (response?.ok === true) found.push(...readLogs(response.result, block))
    else if (filter.accounts.length > 1) found.push(...(await readFilters(rpc, block, halvesOf(filter))))
    else throw invalidResponse(`the logs of one account in block ${block.from}: ${response?.message}`)
  }
  return found
}

function halvesOf({ side, accounts }: Filter): Filter[] {
  const half = Math.ceil(accounts.length / 2)
  return [accounts.slice(0, half), accounts.slice(half)].map((some) => ({ side, accounts: some }))
}

function logsCall({ hash: blockHash, tokens: address }: OneBlock, { side, accounts }: Filter): RpcCall {
  const filter = side === 'from' ? [topics.transfer, accounts] : [topics.transfer, null, accounts]
  return { method: 'eth_getLogs', params: [{ blockHash, address, topics: filter }] }
}
