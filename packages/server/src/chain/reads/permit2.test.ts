import {
  encodePermit2Settle,
  type Hex,
  networkByName,
  type Permit2Transfer,
  permit2Proxies,
  permit2SettledTopics,
  topics,
} from '@purser/protocol'
import { expect, test } from 'vitest'
import { nodesOf } from '../../../test/deposits/fake-chain.ts'
import { isProblem } from '../../platform/errors.ts'
import { createPermit2Use } from '../rpc/permit2-use.ts'
import { createQuorum } from '../rpc/quorum.ts'
import type { Rpc, RpcCall, RpcResponse } from '../rpc/rpc.ts'
import { createPaymentReads } from './payment-reads.ts'
import { inspectPermit2, isSpent } from './permit2.ts'

const owner = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'
const payTo = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
const token = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const settler = '0x5de4111afa1a4b94908f83103EB1F1706367c2e6'
const transfer: Permit2Transfer = {
  scheme: 'exact',
  spender: permit2Proxies.exact,
  owner,
  token,
  permitted: 100n,
  nonce: 259n,
  deadline: 2n,
  witness: { to: payTo, facilitator: undefined, validAfter: 0n },
}
const settlement = { transfer, amount: 100n, signature: '0xabcd', permit2612: undefined } as const
const now = new Date('2026-11-22T00:00:00Z')
const clock = { now: () => now }
const found = base('base')
const hashOf = (index: number): Hex => `0x${index.toString(16).padStart(64, '0')}`

function base(name: string) {
  const network = networkByName(name)
  if (network === undefined) throw new Error('no such network')
  return network
}

type Node = (call: RpcCall) => unknown

/** A fake node: returns a result for each call, or an error when `node` throws. */
function rpcOf(node: Node): Rpc {
  const response = (call: RpcCall): RpcResponse => {
    try {
      return { ok: true, result: node(call) }
    } catch (error) {
      return { ok: false, code: 3, message: String(error), data: '0x756688fe' }
    }
  }
  const rpc: Rpc = {
    batch: async (calls) => calls.map(response),
    call: async (method, params) => response({ method, params }),
    async result(method, params) {
      const got = response({ method, params })
      if (!got.ok) throw new Error(got.message)
      return got.result
    },
    onOneNode: (work) => work(rpc),
  }
  return rpc
}

const word = (value: bigint): Hex => `0x${value.toString(16).padStart(64, '0')}`
const topicOf = (address: string): Hex => `0x${'0'.repeat(24)}${address.slice(2).toLowerCase()}`

interface Chain {
  readonly height: bigint
  /** The first block after which the nonce is spent. */
  readonly spentAt: bigint
  /** Inputs of the transactions to the proxy with a matching transfer, in order. */
  readonly inputs: readonly Hex[]
  readonly amount?: bigint
  readonly logsHeight?: bigint
  readonly to?: string
  /**
   * What the receipt of each transaction shows: `paid` a transfer of the amount, `authorized` the use of an authorization, `token` another log of the
   * token, `settled` the proxy's log.
   */
  readonly logs?: readonly ('paid' | 'authorized' | 'token' | 'settled' | 'foreign')[]
}

/** A block's hash is its number. */
function blockAt(number: bigint) {
  const hash = word(number)
  return { number: `0x${number.toString(16)}`, hash, parentHash: hash, timestamp: '0x1' }
}

function nodeOf({
  height,
  spentAt,
  inputs,
  amount = 100n,
  logsHeight = height,
  to = transfer.spender,
  logs = [],
}: Chain): Node {
  return ({ method, params }) => {
    if (method === 'eth_blockNumber') return `0x${logsHeight.toString(16)}`
    if (method === 'eth_getBlockByNumber') return blockAt(params[0] === 'latest' ? height : BigInt(String(params[0])))
    if (method === 'eth_call') return word(BigInt(Object(params[1]).blockHash) >= spentAt ? 1n << 3n : 0n)
    if (method === 'eth_getLogs')
      return inputs.map((_, index) => ({
        address: token,
        topics: [topics.transfer, topicOf(owner), topicOf(payTo)],
        data: word(amount),
        transactionHash: hashOf(index),
      }))
    const index = Number(BigInt(String(params[0])))
    if (method === 'eth_getTransactionReceipt') return receiptOf(index, logs.map(logOf))
    return inputs[index] === undefined ? null : { to, input: inputs[index] }
  }
}

type LogKind = NonNullable<Chain['logs']>[number]

function logOf(kind: LogKind) {
  if (kind === 'paid')
    return { address: token, topics: [topics.transfer, topicOf(owner), topicOf(payTo)], data: word(100n) }
  if (kind === 'authorized')
    return { address: token, topics: [topics.authorizationUsed, topicOf(owner), word(1n)], data: '0x' }
  if (kind === 'token') return { address: token, topics: [word(1n)], data: '0x' }
  return { address: kind === 'settled' ? transfer.spender : settler, topics: [permit2SettledTopics[0]], data: '0x' }
}

function receiptOf(index: number, logs: readonly unknown[]) {
  const numbers = { blockNumber: '0x5a', gasUsed: '0x1', effectiveGasPrice: '0x1', status: '0x1' }
  return { ...numbers, transactionHash: hashOf(index), blockHash: word(90n), logs }
}

function search(...chains: readonly Chain[]) {
  return searchAt(chains.map((chain) => rpcOf(nodeOf(chain))))
}

function searchAt(nodes: readonly Rpc[], within: { requestsMax?: number; carrier?: Hex } = {}) {
  const quorum = createQuorum(found, nodesOf(nodes))
  const options = { amount: 100n, since: now, ...within }
  return createPermit2Use({ network: found, quorum, clock }).findPermit2Use(transfer, options)
}

const ours = encodePermit2Settle(settlement)
const another = encodePermit2Settle({ ...settlement, transfer: { ...transfer, nonce: 4n } })

test('the transaction that settled this permit is found among others of the same amount', async () => {
  expect(await search({ height: 100n, spentAt: 90n, inputs: [another, ours, another] })).toEqual({
    outcome: 'used',
    transactionHash: hashOf(1),
  })
})

test('a nonce that is spent without such a transaction was spent elsewhere', async () => {
  const elsewhere = { outcome: 'elsewhere' }
  expect(await search({ height: 100n, spentAt: 90n, inputs: [] })).toEqual(elsewhere)
  expect(await search({ height: 100n, spentAt: 90n, inputs: [another] })).toEqual(elsewhere)
  expect(await search({ height: 100n, spentAt: 90n, inputs: [ours], amount: 99n })).toEqual(elsewhere)
  expect(await search({ height: 100n, spentAt: 90n, inputs: [ours], to: settler })).toEqual(elsewhere)
})

test('a transaction that settles the permit through another contract proves as many permits as its logs have settlements of the amount', async () => {
  const through = { height: 100n, spentAt: 90n, inputs: [another, `0x12345678${ours.slice(2)}`], to: settler } as const
  const used = (logIndexes: readonly number[]) => ({ outcome: 'used', transactionHash: hashOf(1), logIndexes })
  const twice = ['paid', 'settled', 'foreign', 'paid', 'token', 'settled'] as const
  expect(await search({ ...through, logs: ['token', 'paid', 'settled'] })).toEqual(used([2]))
  expect(await search({ ...through, logs: twice })).toEqual(used([1, 5]))
  for (const logs of [[], ['paid'], ['settled'], ['settled', 'paid'], ['paid', 'foreign', 'settled']] as const)
    expect(await search({ ...through, logs })).toEqual({ outcome: 'elsewhere' })
  expect(await search({ ...through, inputs: [another], logs: ['paid', 'settled'] })).toEqual({ outcome: 'elsewhere' })
})

test('a transfer that belongs to an authorization proves no permit, and one behind it does', async () => {
  const through = { height: 100n, spentAt: 90n, inputs: [`0x12345678${ours.slice(2)}`], to: settler } as const
  const borrowed = ['authorized', 'paid'] as const
  for (const logs of [[], ['token'], ['token', 'token']] as const)
    expect(await search({ ...through, logs: [...borrowed, ...logs, 'settled'] })).toEqual({ outcome: 'elsewhere' })
  expect(await search({ ...through, logs: [...borrowed, 'token', 'paid', 'settled'] })).toEqual({
    outcome: 'used',
    transactionHash: hashOf(0),
    logIndexes: [4],
  })
  expect(await search({ ...through, logs: [...borrowed, 'paid', 'settled', ...borrowed, 'settled'] })).toMatchObject({
    logIndexes: [3],
  })
})

test('one of two nodes cannot invent a settlement through another contract, nor one of three how many it has', async () => {
  const through = { height: 100n, spentAt: 90n, inputs: [`0x12345678${ours.slice(2)}`], to: settler } as const
  const [honest, lying] = [
    { ...through, logs: ['paid', 'settled'] as const },
    { ...through, logs: ['paid', 'settled', 'paid', 'settled'] as const },
  ]
  expect(await search(honest, lying)).toEqual({ outcome: 'open' })
  expect(await search({ ...through, logs: [] }, honest)).toEqual({ outcome: 'open' })
  const decided = { outcome: 'used', transactionHash: hashOf(0), logIndexes: [1] }
  expect(await search(honest, lying, honest)).toEqual(decided)
})

test('a nonce is undecided before the network’s confirmation depth', async () => {
  const depth = BigInt(found.confirmationDepth)
  expect(await search({ height: 100n, spentAt: 100n, inputs: [ours] })).toEqual({ outcome: 'open' })
  expect(await search({ height: 100n, spentAt: 102n - depth, inputs: [ours] })).toEqual({ outcome: 'open' })
  expect(await search({ height: 100n, spentAt: 101n - depth, inputs: [ours] })).toMatchObject({ outcome: 'used' })
})

test('a node that is behind, or that lacks a transaction that it returned a log of, has no vote', async () => {
  const chain = { height: 100n, spentAt: 90n, inputs: [ours] }
  expect(await search({ ...chain, inputs: [], logsHeight: 95n })).toEqual({ outcome: 'open' })
  const node = nodeOf(chain)
  const forgetful = rpcOf((call) => (call.method === 'eth_getTransactionByHash' ? null : node(call)))
  expect(await searchAt([forgetful])).toEqual({ outcome: 'open' })
})

test('one of two nodes cannot decide where a nonce was spent, and one of three is outvoted', async () => {
  const chain = { height: 100n, spentAt: 90n, inputs: [ours] }
  const blind = { ...chain, inputs: [] }
  const higher = { ...chain, height: 102n }
  expect(await search(chain, blind)).toEqual({ outcome: 'open' })
  expect(await search(chain, blind, higher)).toEqual({ outcome: 'used', transactionHash: hashOf(0) })
  expect(await search(chain, blind, blind)).toEqual({ outcome: 'elsewhere' })
  expect(await search(chain, higher)).toMatchObject({ outcome: 'used' })
})

test('a node that refuses long block ranges is searched in short ones', async () => {
  const node = nodeOf({ height: 9_000n, spentAt: 90n, inputs: [ours] })
  const limited = rpcOf((call) => {
    const { fromBlock, toBlock } = Object(call.params[0])
    if (call.method === 'eth_getLogs' && BigInt(toBlock) - BigInt(fromBlock) >= 700n) throw new Error('range too long')
    return node(call)
  })
  expect(await searchAt([limited])).toEqual({ outcome: 'used', transactionHash: hashOf(0) })
  expect(await searchAt([limited], { requestsMax: 2 })).toEqual({ outcome: 'open' })
})

test('a transaction that is known to carry the transfer is read without a search for logs', async () => {
  const node = nodeOf({ height: 100n, spentAt: 90n, inputs: [another, ours] })
  const pruned = rpcOf((call) => (call.method === 'eth_getLogs' ? [] : node(call)))
  expect(await searchAt([pruned], { carrier: hashOf(1) })).toEqual({ outcome: 'used', transactionHash: hashOf(1) })
  expect(await searchAt([pruned], { carrier: hashOf(0) })).toEqual({ outcome: 'elsewhere' })
})

test('an unexplained failure is retried as of the pending block', async () => {
  const blocks: unknown[] = []
  const rpc = rpcOf(({ method, params }) => {
    if (method === 'eth_getCode') return '0x60'
    const [call, block] = params
    const data = String(Object(call).data)
    if (data.startsWith('0x70a08231') || data.startsWith('0xdd62ed3e')) return word(100n)
    if (data.startsWith('0x4fe02b44')) return word(0n)
    blocks.push(block)
    if (block === 'latest') throw new Error('execution reverted')
    return '0x'
  })
  expect(await inspectPermit2(rpc, { settlement, settler })).toMatchObject({ trial: { ok: true }, nonceUsed: false })
  expect(blocks).toEqual(['latest', 'pending'])
})

test('the trial uses the relayer as sender and the gas limit of settlement', async () => {
  const tried: unknown[] = []
  const rpc = rpcOf(({ method, params }) => {
    if (method === 'eth_getCode') return '0x60'
    if (Object(params[0]).from !== undefined) tried.push(params[0])
    return word(0n)
  })
  await inspectPermit2(rpc, { settlement, settler })
  expect(tried[0]).toEqual({ from: settler, to: transfer.spender, data: ours, gas: `0x${(460_000).toString(16)}` })
})

const permit2612 = { value: 100n, deadline: 2n, v: 27, r: word(1n), s: word(2n) } as const

const opinions = [
  ['an empty payer', { balance: 10n ** 9n, isTaken: true }, { balance: 0n, isTaken: false }],
  ['a payer', { balance: 0n, isTaken: false }, { balance: 100n, isTaken: true }],
  ['a payer whose balance it denies', { balance: 0n, isTaken: true }, { balance: 100n, isTaken: true }],
] as const

test.each(opinions)(
  'one node of three that answers first does not decide a payment with its own approval of %s',
  async (_, lying, honest) => {
    const nodes = [lying, honest, honest].map((opinion) => rpcOf(probed(opinion)))
    const [first] = nodes
    if (first === undefined) throw new Error('there is a node')
    const { inspectPermit2: inspect } = createPaymentReads({ ...first, ...nodesOf(nodes) }, () => Promise.reject())
    const { trial, balance } = await inspect({ settlement: { ...settlement, permit2612 }, settler })
    expect([trial.ok, balance]).toEqual([honest.isTaken, honest.balance])
  },
)

/** A node that reports this balance and no allowance, and on which the payment succeeds or not. */
function probed({ balance, isTaken }: { readonly balance: bigint; readonly isTaken: boolean }): Node {
  return ({ method, params }) => {
    if (method === 'eth_getCode') return '0x60'
    const { data, from } = Object(params[0])
    if (from !== undefined) {
      if (isTaken) return '0x'
      throw new Error('execution reverted')
    }
    return word(String(data).startsWith('0x70a08231') ? balance : 0n)
  }
}

test('a bitmap answer that is not a number is rejected', async () => {
  for (const wrong of [null, 7, '0x12'])
    expect(
      isProblem(
        await isSpent(
          rpcOf(() => wrong),
          transfer,
          'latest',
        ).catch((error: unknown) => error),
        'chain-unavailable',
      ),
    ).toBe(true)
})
