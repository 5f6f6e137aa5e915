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
      account,
      ...(await (how === 'by a contract' ? sent(multicall, forwarding(account)) : sent(account))),
    }
    expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value })).toBe('yes')
    expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value + 1n })).toBe('no')
    expect(await among(2).confirmCoinArrival({ ...arrival, account: stranger(), rawLeast: value })).toBe('no')
    expect(await among(2, 50).confirmCoinArrival({ ...arrival, rawLeast: value }), 'not deep enough').toBe('undecided')
  },
)

test('coin that came in the block in which the account spent coin is confirmed, and no more than came', async () => {
  const node = createTestClient({ mode: 'anvil', transport: http(dev.rpcUrl) })
  const key = privateKeyToAccount(generatePrivateKey())
  await node.setBalance({ address: key.address, value: 10n ** 18n })
  const client = createWalletClient({ transport: http(dev.rpcUrl) }).extend(publicActions)
  const [payer] = await client.getAddresses()
  if (payer === undefined) throw new Error('no account')
  await node.setAutomine(false)
  const common = { chain: null, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 10n ** 9n } as const
  const data = forwarding(key.address)
  await client.sendTransaction({
    ...common,
    account: key,
    to: stranger(),
    value: 10n ** 17n,
    gas: 21_000n,
    nonce: 0,
    type: 'eip1559',
  })
  const hash = await client.sendTransaction({ ...common, account: payer, to: multicall, value, data, gas: 200_000n })
  await node.mine({ blocks: 1 })
  await node.setAutomine(true)
  const { status, blockNumber: block } = await client.waitForTransactionReceipt({ hash })
  expect([status, await client.getTransactionCount({ address: key.address, blockNumber: block })]).toEqual([
    'success',
    1,
  ])
  const arrival = { account: key.address, hash, block }
  expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value })).toBe('yes')
  expect(await among(2).confirmCoinArrival({ ...arrival, rawLeast: value + 1n })).toBe('no')
})

test('coin that one node of two or of three invents is not confirmed', async () => {
  const [account, arrival] = [stranger(), await sent(stranger())]
  liar.lie('eth_getBalance', ({ params }) => ({
    result: BigInt(String(params[1])) < arrival.block ? '0x0' : '0xffffff',
  }))
  expect(await among(0).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('yes')
  expect(await among(1).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('undecided')
  expect(await among(2).confirmCoinArrival({ ...arrival, account, rawLeast: value })).toBe('no')
})
