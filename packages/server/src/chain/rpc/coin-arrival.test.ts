import type { DevChain } from '@purser/devnet'
import type { Address, Hex } from '@purser/protocol'
import { createTestClient, createWalletClient, encodeFunctionData, http, parseAbi, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aLiarStage, type LiarStage } from '../../../test/liar-stage.ts'
import type { LyingNode } from '../../../test/lying-node.ts'
import type { Chain } from '../port.ts'

const multicall: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
let dev: DevChain
let liar: LyingNode
let stage: LiarStage

beforeAll(async () => {
  stage = await aLiarStage()
  ;({ dev, liar } = stage)
})
afterEach(() => liar.tellTheTruth())
afterAll(() => stage?.stop())

function among(trueNodes: number, confirmationDepth = 1): Chain {
  return stage.among(trueNodes, { confirmationDepth })
}

const stranger = () => privateKeyToAddress(generatePrivateKey())
const value = 7_000n

/** Sends coin from an account that the local node signs for. Returns the transaction hash and block. */
async function sent(to: Address, data?: Hex): Promise<{ readonly hash: Hex; readonly block: bigint }> {
  const client = createWalletClient({ transport: http(dev.rpcUrl) }).extend(publicActions)
  const [account] = await client.getAddresses()
  if (account === undefined) throw new Error('no account')
  const hash = await client.sendTransaction({
    account,
    chain: null,
    to,
    value,
    ...(data === undefined ? {} : { data }),
  })
  const { status, blockNumber } = await client.waitForTransactionReceipt({ hash })
  expect(status).toBe('success')
  return { hash, block: blockNumber }
}

const forwarding = (target: Address): Hex =>
  encodeFunctionData({
    abi: parseAbi([
      'struct Call { address target; bool allowFailure; uint256 value; bytes callData; }',
      'function aggregate3Value(Call[] calls) payable',
    ]),
    args: [[{ target, allowFailure: false, value, callData: '0x' }]],
  })

test.each(['by the transaction itself', 'by a contract'])(
  'coin that an account received %s is confirmed',
  async (how) => {
    const account = stranger()
    const arrival = {
      ...{ account, rawOthers: 0n },
      ...(await (how === 'by a contract' ? sent(multicall, forwarding(account)) : sent(account))),
    }
    const shown = how === 'by a contract' ? 'block' : 'transaction'
    expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value })).toBe(shown)
    expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value + 1n })).toBe('no')
    expect(await among(2).confirmCoinArrival({ ...arrival, account: stranger(), rawLeast: value })).toBe('no')
    expect(await among(2, 50).confirmCoinArrival({ ...arrival, rawLeast: value }), 'not deep enough').toBe('undecided')
  },
)

const gasPrices = { chain: null, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n } as const

/** Mines transactions of one account, of this value each, in one block. */
async function sentTogether(calls: readonly { readonly to: Address; readonly data?: Hex }[]) {
  const node = createTestClient({ mode: 'anvil', transport: http(dev.rpcUrl) })
  const client = createWalletClient({ transport: http(dev.rpcUrl) }).extend(publicActions)
  const [account] = await client.getAddresses()
  if (account === undefined) throw new Error('no account')
  await node.setAutomine(false)
  const hashes: Hex[] = []
  for (const call of calls)
    hashes.push(await client.sendTransaction({ ...gasPrices, ...call, account, value, gas: 200_000n }))
  await node.mine({ blocks: 1 })
  await node.setAutomine(true)
  const receipts = await Promise.all(hashes.map((hash) => client.waitForTransactionReceipt({ hash })))
  const [block, ...others] = new Set(receipts.map(({ blockNumber }) => blockNumber))
  if (block === undefined || others.length > 0) throw new Error('not one block')
  return { hashes, block }
}

test('the rise of a balance in a block is confirmed for as many arrivals as it covers', async () => {
  const account = stranger()
  const { hashes, block } = await sentTogether([
    { to: multicall, data: forwarding(account) },
    { to: multicall, data: forwarding(account) },
    { to: stranger() },
  ])
  for (const hash of hashes) {
    const arrival = { account, hash, block, rawLeast: value }
    expect(await among(2).confirmCoinArrival({ ...arrival, rawOthers: value })).toBe('block')
    expect(await among(2).confirmCoinArrival({ ...arrival, rawOthers: value + 1n })).toBe('no')
  }
})

test('coin that one transaction itself sent proves no arrival by another of the block', async () => {
  const account = stranger()
  const { hashes, block } = await sentTogether([{ to: account }, { to: stranger() }])
  const arrival = { account, block, rawLeast: value, rawOthers: 0n }
  const confirmed = hashes.map((hash) => among(2).confirmCoinArrival({ ...arrival, hash }))
  expect(await Promise.all(confirmed)).toEqual(['transaction', 'no'])
})

test('coin that came in the block in which the account spent coin is confirmed, and no more than came', async () => {
  const node = createTestClient({ mode: 'anvil', transport: http(dev.rpcUrl) })
  const key = privateKeyToAccount(generatePrivateKey())
  await node.setBalance({ address: key.address, value: 10n ** 18n })
  const client = createWalletClient({ transport: http(dev.rpcUrl) }).extend(publicActions)
  const [payer] = await client.getAddresses()
  if (payer === undefined) throw new Error('no account')
  await node.setAutomine(false)
  const data = forwarding(key.address)
  await client.sendTransaction({
    ...gasPrices,
    account: key,
    to: stranger(),
    value: 10n ** 17n,
    gas: 21_000n,
    nonce: 0,
    type: 'eip1559',
  })
  const hash = await client.sendTransaction({ ...gasPrices, account: payer, to: multicall, value, data, gas: 200_000n })
  await node.mine({ blocks: 1 })
  await node.setAutomine(true)
  const { status, blockNumber: block } = await client.waitForTransactionReceipt({ hash })
  expect([status, await client.getTransactionCount({ address: key.address, blockNumber: block })]).toEqual([
    'success',
    1,
  ])
  const arrival = { account: key.address, hash, block, rawOthers: 0n }
  expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value })).toBe('block')
  expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value + 1n })).toBe('no')
})

test('coin that one node of two or of three invents is not confirmed', async () => {
  const [account, arrival] = [stranger(), { ...(await sent(stranger())), rawOthers: 0n }]
  liar.lie('eth_getBalance', ({ params }) => ({
    result: BigInt(String(params[1])) < arrival.block ? '0x0' : '0xffffff',
  }))
  expect(await among(0).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('block')
  expect(await among(1).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('undecided')
  expect(await among(2).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('no')
})
