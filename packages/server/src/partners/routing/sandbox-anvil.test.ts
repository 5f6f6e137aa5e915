import {
  type BridgeRelayer,
  createBridgeRelayer,
  type DevChain,
  fundNative,
  fundSandbox,
  fundToken,
  sandboxBridgeAddress,
  sandboxPoolAddress,
  startChain,
  tokenBalance,
} from '@purser/devnet'
import { type Address, networks, zeroAddress } from '@purser/protocol'
import { createPublicClient, createWalletClient, erc20Abi, http, parseEventLogs } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { endOn } from '../../../test/routes.ts'
import { createChains } from '../../chain/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { systemRandom } from '../../platform/random.ts'
import type { ChainReader, FindEvent, RouteEnd, RouteQuote, RouteRequest, RoutingPartner, SentRoute } from './port.ts'
import { createSandboxRouting } from './sandbox.ts'

let base: DevChain
let ethereum: DevChain
let outbound: Outbound
let relayer: BridgeRelayer
let sandbox: RoutingPartner
let other: RoutingPartner
let payer: PrivateKeyAccount
let receiver: Address

const usdcOnBase = endOn('base-sepolia', 'USDC')
const usdcOnEthereum = endOn('eth-sepolia', 'USDC')
const coinOnBase = endOn('base-sepolia', 'native')

beforeAll(async () => {
  ;[base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  await Promise.all([fundSandbox(base), fundSandbox(ethereum)])
  outbound = createOutbound()
  const rpcUrls = { 'base-sepolia': [base.rpcUrl], 'eth-sepolia': [ethereum.rpcUrl] }
  const chains = createChains({ outbound, clock: systemClock, networks, rpcUrls, rpcTimeoutMs: 5_000 })
  const reader: ChainReader = {
    call: (network, to, data) => chains.on(network).agreedCall(to, data),
    blockNumber: async (network) => (await chains.on(network).head()).number,
    logs: async (network, txHash) => (await chains.on(network).receipt(txHash))?.logs,
  }
  const findEvent: FindEvent = (network, address, topics) => chains.on(network).findEvent(address, topics)
  const contracts = { pool: sandboxPoolAddress, bridge: sandboxBridgeAddress } as const
  const make = () => createSandboxRouting({ reader, findEvent, clock: systemClock, random: systemRandom }, contracts)
  ;[sandbox, other] = [make(), make()]
})
afterAll(async () => {
  await outbound?.close()
  await Promise.all([base?.stop(), ethereum?.stop()])
})
beforeEach(async () => {
  relayer = createBridgeRelayer([base, ethereum])
  payer = privateKeyToAccount(generatePrivateKey())
  receiver = privateKeyToAccount(generatePrivateKey()).address
  await fundNative(base, payer.address, 10n ** 19n)
  await fundToken(base, 'USDC', payer.address, 1_000_000_000n)
})

function requestOf(from: RouteEnd, to: RouteEnd, rawAmount: bigint): RouteRequest {
  return { from, to, rawAmount, fromAddress: payer.address, toAddress: receiver, slippageBps: 50 }
}

async function quoteOf(request: RouteRequest): Promise<RouteQuote> {
  const quoted = await sandbox.quote(request)
  if (!quoted.ok) throw new Error(quoted.words)
  return quoted.quote
}

/** Signs and sends a quote's calls in order. Returns the last hash. */
async function send({ calls }: Pick<RouteQuote, 'calls'>): Promise<`0x${string}`> {
  const wallet = createWalletClient({ account: payer, transport: http(base.rpcUrl) })
  const reader = createPublicClient({ transport: http(base.rpcUrl), pollingInterval: 20 })
  let hash: `0x${string}` = '0x'
  for (const { to, value, data } of calls) {
    hash = await wallet.sendTransaction({ to, value, data, chain: null })
    const receipt = await reader.waitForTransactionReceipt({ hash })
    if (receipt.status !== 'success') throw new Error('reverted')
  }
  return hash
}

async function coinOf(chain: DevChain, account: Address): Promise<bigint> {
  return createPublicClient({ transport: http(chain.rpcUrl) }).getBalance({ address: account })
}

/** Recipients and amounts of a transaction's token transfers. */
async function movedIn(chain: DevChain, hash: `0x${string}` | undefined): Promise<unknown[]> {
  const reader = createPublicClient({ transport: http(chain.rpcUrl) })
  const { logs } = await reader.getTransactionReceipt({ hash: hash ?? '0x' })
  return parseEventLogs({ abi: erc20Abi, eventName: 'Transfer', logs }).map(({ args }) => [args.to, args.value])
}

async function begun(request: RouteRequest): Promise<{ readonly route: SentRoute; readonly quote: RouteQuote }> {
  const quote = await quoteOf(request)
  return {
    quote,
    route: { request, rawOutMin: quote.rawOutMin, reference: quote.reference, txHash: await send(quote) },
  }
}

test('a swap pays exactly the quoted amount, takes exactly the input amount, and leaves no approval', async () => {
  const request = requestOf(usdcOnBase, coinOnBase, 30_000_000n)
  const quote = await quoteOf(request)
  const before = {
    reference: quote.reference,
    rawOutMin: quote.rawOutMin,
    request,
    txHash: `0x${'00'.repeat(32)}`,
  } as const
  expect(await sandbox.status(before)).toEqual({ state: 'pending', partnerStatus: 'not-seen' })
  const txHash = await send(quote)
  expect(await coinOf(base, receiver)).toBe(quote.rawOut)
  expect(await tokenBalance(base, 'USDC', payer.address)).toBe(970_000_000n)
  // At 3,000 dollars per coin and a fee of 0.3%, 30 dollars buy slightly less than 0.01 coin.
  expect(quote.rawOut).toBeGreaterThan(9_900_000_000_000_000n)
  expect(quote.rawOut).toBeLessThan(9_970_000_000_000_001n)
  expect(await other.status({ ...before, txHash })).toMatchObject({
    state: 'completed',
    received: { token: zeroAddress, rawAmount: quote.rawOut, isOther: false },
  })
})

test('a coin is swapped for dollars without an approval', async () => {
  const { quote, route } = await begun(requestOf(coinOnBase, usdcOnBase, 10n ** 18n))
  expect(quote.calls).toMatchObject([{ value: 10n ** 18n, to: sandboxPoolAddress }])
  expect(await tokenBalance(base, 'USDC', receiver)).toBe(quote.rawOut)
  expect(await sandbox.status(route)).toMatchObject({ state: 'completed', received: { rawAmount: quote.rawOut } })
})

test('the price moves with what is swapped, and a swap that would give too little moves nothing', async () => {
  const request = requestOf(usdcOnBase, coinOnBase, 500_000_000n)
  const stale = await quoteOf(request)
  const whale = requestOf(usdcOnBase, coinOnBase, 200_000_000_000n)
  await fundToken(base, 'USDC', payer.address, whale.rawAmount)
  await send(await quoteOf(whale))
  expect((await quoteOf(request)).rawOut).toBeLessThan(stale.rawOutMin)
  const before = await tokenBalance(base, 'USDC', payer.address)
  await expect(send(stale)).rejects.toThrow()
  expect(await tokenBalance(base, 'USDC', payer.address)).toBe(before)
  expect(await sandbox.status({ rawOutMin: 1n, request, reference: stale.reference, txHash: '0x' })).toMatchObject({
    state: 'pending',
  })
})

test('the bridge takes the money on one chain and pays it out once on the other, however often it is relayed', async () => {
  const { quote, route } = await begun(requestOf(usdcOnBase, usdcOnEthereum, 100_000_000n))
  expect(quote).toMatchObject({ rawOut: 99_900_000n, fees: [{ rawAmount: 100_000n }] })
  expect(await sandbox.status(route)).toEqual({ state: 'pending', partnerStatus: 'deposited' })
  await relayer.pass()
  const status = await sandbox.status(route)
  const paidIn = status.state === 'completed' ? status.destinationTxHash : undefined
  expect(await movedIn(ethereum, paidIn)).toEqual([[receiver, 99_900_000n]])
  await relayer.pass()
  const restarted = createBridgeRelayer([base, ethereum])
  for (const conduct of ['deliver', 'refund', 'fail'] as const) {
    restarted.setConduct(conduct)
    await restarted.pass()
  }
  expect(await tokenBalance(ethereum, 'USDC', receiver)).toBe(99_900_000n)
  expect(await tokenBalance(base, 'USDC', payer.address)).toBe(900_000_000n)
  expect(await other.status(route)).toMatchObject({
    state: 'completed',
    received: { chainId: usdcOnEthereum.network.chainId, rawAmount: 99_900_000n, isOther: false },
  })
})

test('set to stall it pays nothing, and set to deliver it pays pending routes', async () => {
  const { route } = await begun(requestOf(usdcOnBase, usdcOnEthereum, 50_000_000n))
  relayer.setConduct('stall')
  await relayer.pass()
  expect(await sandbox.status(route)).toEqual({ state: 'pending', partnerStatus: 'deposited' })
  expect(await tokenBalance(ethereum, 'USDC', receiver)).toBe(0n)
  relayer.setConduct('deliver')
  await relayer.pass()
  expect(await sandbox.status(route)).toMatchObject({ state: 'completed' })
  expect(await tokenBalance(ethereum, 'USDC', receiver)).toBe(49_950_000n)
})

test('set to refund it returns everything and never pays out afterwards', async () => {
  const { route } = await begun(requestOf(usdcOnBase, usdcOnEthereum, 50_000_000n))
  relayer.setConduct('refund')
  await relayer.pass()
  const status = await sandbox.status(route)
  expect(status).toMatchObject({ state: 'failed', refund: 'done' })
  expect(await movedIn(base, status.state === 'failed' ? status.refundTxHash : undefined)).toEqual([
    [payer.address, 50_000_000n],
  ])
  expect(await tokenBalance(base, 'USDC', payer.address)).toBe(1_000_000_000n)
  relayer.setConduct('deliver')
  await relayer.pass()
  await createBridgeRelayer([base, ethereum]).pass()
  expect(await tokenBalance(ethereum, 'USDC', receiver)).toBe(0n)
})

test('set to fail it keeps the money until it is set to refund', async () => {
  const { route } = await begun(requestOf(usdcOnBase, usdcOnEthereum, 50_000_000n))
  relayer.setConduct('fail')
  await relayer.pass()
  expect(await sandbox.status(route)).toMatchObject({ state: 'failed', refund: 'pending' })
  relayer.setConduct('deliver')
  await relayer.pass()
  expect(await tokenBalance(ethereum, 'USDC', receiver)).toBe(0n)
  relayer.setConduct('refund')
  await relayer.pass()
  expect(await sandbox.status(route)).toMatchObject({ state: 'failed', refund: 'done' })
  expect(await tokenBalance(base, 'USDC', payer.address)).toBe(1_000_000_000n)
})

test('set to deliver less it does, and the status has the amount that arrived', async () => {
  const { quote, route } = await begun(requestOf(usdcOnBase, usdcOnEthereum, 50_000_000n))
  relayer.setConduct('less')
  await relayer.pass()
  const status = await sandbox.status(route)
  const arrived = await tokenBalance(ethereum, 'USDC', receiver)
  expect(status).toMatchObject({ state: 'completed', received: { rawAmount: arrived } })
  expect(arrived).toBe(quote.rawOutMin / 2n)
})

test('there is no quote without a market, between coin and token, or above the liquidity', async () => {
  const quoteFor = (from: RouteEnd, to: RouteEnd, rawAmount: bigint) => sandbox.quote(requestOf(from, to, rawAmount))
  expect(await quoteFor(usdcOnBase, usdcOnBase, 1_000n)).toMatchObject({ ok: false, reason: 'no-route' })
  expect(await quoteFor(coinOnBase, usdcOnEthereum, 10n ** 18n)).toMatchObject({ ok: false, reason: 'no-route' })
  expect(await quoteFor(usdcOnBase, usdcOnEthereum, 10n ** 15n)).toMatchObject({ ok: false, reason: 'amount-too-high' })
  expect(await quoteFor(usdcOnBase, usdcOnEthereum, 1n)).toMatchObject({ ok: false, reason: 'amount-too-low' })
})

test('two quotes for one transfer are separate routes with separate statuses', async () => {
  const request = requestOf(usdcOnBase, usdcOnEthereum, 50_000_000n)
  const [first, second] = [await quoteOf(request), await quoteOf(request)]
  expect(first.reference).not.toBe(second.reference)
  const txHash = await send(first)
  await relayer.pass()
  expect(await sandbox.status({ rawOutMin: 1n, request, reference: first.reference, txHash })).toMatchObject({
    state: 'completed',
  })
  expect(await sandbox.status({ rawOutMin: 1n, request, reference: second.reference, txHash })).toMatchObject({
    state: 'pending',
  })
})
