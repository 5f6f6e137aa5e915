import { type Address, type Hex, networkByName, topics } from '@purser/protocol'
import { expect, test } from 'vitest'
import { instantOf } from '../../platform/clock.ts'
import { fail } from '../errors.ts'
import type { Decision } from './quorum.ts'
import { accountTopic, quantity } from './read.ts'
import type { Rpc } from './rpc.ts'
import { createSameCall } from './same-call.ts'

const [sender, to]: Address[] = [`0x${'2'.repeat(40)}`, `0x${'3'.repeat(40)}`]
const [hash, blockHash]: Hex[] = [`0x${'5'.repeat(64)}`, `0x${'6'.repeat(64)}`]
const call = { sender: sender ?? '0x', nonce: 4n, calls: [{ to: to ?? '0x', data: '0x' as const, value: 7n }] }
const [head, blockMs, headMs] = [100_000n, 2_000, 1_700_000_000_000]
const noEnd = () => new Promise<void>(() => {})

const timeOf = (block: bigint) => headMs - Number(head - block) * blockMs

interface Mined {
  readonly block: bigint
  readonly nonce: bigint
  /** Milliseconds after the block at which the row of the transaction was made. */
  readonly madeLaterMs: number
  /** Whether the node has no states of old blocks, and shows the transaction by a log alone. */
  readonly isPruned?: boolean
  /** The nonce that the other nodes show, if it is another one. */
  readonly nonceOfOthers?: bigint
}

/** The hash that a search finds on a chain whose account sent one transaction, with the calls that are searched for. */
function found({
  block,
  nonce,
  madeLaterMs,
  isPruned = false,
  nonceOfOthers = nonce,
}: Mined): Promise<Hex | undefined> {
  const network = networkByName('base')
  if (network === undefined) throw new Error('no such network')
  const transaction = {
    ...{ hash, blockHash, blockNumber: quantity(block), from: sender, to, input: '0x', value: '0x7' },
    nonce: quantity(nonce),
  }
  const log = { topics: [topics.transfer, accountTopic(call.sender)], transactionHash: hash }
  const logsOf = (filter: unknown) => {
    const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string }
    return isPruned && BigInt(fromBlock) <= block && block <= BigInt(toBlock) ? [log] : []
  }
  const result = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    if (method === 'eth_blockNumber') return quantity(head)
    if (method === 'eth_getLogs') return logsOf(params[0])
    if (method === 'eth_getTransactionByHash') return transaction
    if (method === 'eth_getTransactionCount') {
      if (isPruned) throw fail('chain-unavailable')
      return quantity(BigInt(String(params[1])) < block ? nonce : nonce + 1n)
    }
    if (method !== 'eth_getBlockByNumber') throw new Error(method)
    const number = BigInt(String(params[0]))
    const timestamp = quantity(BigInt(Math.floor(timeOf(number) / 1_000)))
    return { timestamp, transactions: params[1] === true && number === block ? [transaction] : [] }
  }
  const respond = async (method: string, params: readonly unknown[]) =>
    ({ ok: true, result: await result(method, params) }) as const
  const rpc: Rpc = {
    batch: (calls) => Promise.all(calls.map(({ method, params }) => respond(method, params))),
    call: respond,
    result,
    onOneNode: (work) => work(rpc),
  }
  const shown = { ok: true, result: { ...transaction, nonce: quantity(nonceOfOthers) } } as const
  const others: Rpc = { ...rpc, batch: async () => [shown] }
  const decision: Decision = {
    block: { number: head, hash: blockHash ?? '0x', timestampSeconds: BigInt(headMs / 1_000) },
    ...{ newest: head, highest: head },
    at: { blockHash: String(blockHash), requireCanonical: true },
    nodes: [rpc],
    vote: ({ ask }) => ask(others),
  }
  const search = createSameCall({
    network,
    clock: { now: () => instantOf(headMs) } as Parameters<typeof createSameCall>[0]['clock'],
    quorum: { needed: 1, decide: async () => decision },
    wait: noEnd,
  })
  const since = instantOf(timeOf(block) + madeLaterMs)
  return search.findSameCall(call, { since, isOurs: async () => new Set() })
}

const tenMinutes = 600_000

test('a transaction at the searched nonce is found although its row was made ten minutes after it was mined', async () => {
  expect(await found({ block: head - 1_000n, nonce: 4n, madeLaterMs: tenMinutes })).toBe(hash)
})

test('a transaction at the searched nonce is found in a block before those that the time of its row names', async () => {
  const block = head - 20_000n
  expect(await found({ block, nonce: 4n, madeLaterMs: headMs - timeOf(block) })).toBe(hash)
})

test('a node without old states shows the transaction at the searched nonce by its log, whenever its row was made', async () => {
  expect(await found({ block: head - 1_000n, nonce: 4n, madeLaterMs: tenMinutes, isPruned: true })).toBe(hash)
})

test('a transaction with the same calls at another nonce belongs to something else if it was mined before the row was made', async () => {
  const other = { block: head - 1_000n, nonce: 3n, isPruned: true }
  expect(await found({ ...other, madeLaterMs: tenMinutes })).toBeUndefined()
  expect(await found({ ...other, madeLaterMs: 0 }), 'one that was mined later is an attempt that was lost').toBe(hash)
})

test('a nonce that another transaction used finds nothing', async () => {
  expect(await found({ block: head - 1_000n, nonce: 5n, madeLaterMs: 0 })).toBeUndefined()
})

test('a node that names the searched nonce for an earlier transaction is not believed', async () => {
  const earlier = { block: head - 1_000n, nonce: 4n, madeLaterMs: tenMinutes, nonceOfOthers: 3n }
  expect(await found(earlier)).toBeUndefined()
  expect(await found({ ...earlier, isPruned: true })).toBeUndefined()
})
