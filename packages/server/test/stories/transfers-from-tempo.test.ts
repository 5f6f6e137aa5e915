import {
  type BridgeRelayer,
  createBridgeRelayer,
  type DevChain,
  fundSandbox,
  fundToken,
  sandboxPoolAddress,
  sendFromDevAccount,
  startChain,
  tokenBalance,
} from '@purser/devnet'
import { formatAmount, parseAmount } from '@purser/protocol'
import { type Address, createPublicClient, encodeFunctionData, erc20Abi, http, parseAbi } from 'viem'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { transferHandler } from '../../src/features/transfers/index.ts'
import type { Quoted, RoutingPartners } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { masters, partners, path, stranger } from '../partner-stage.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

const alphaUsd: Address = '0x20C0000000000000000000000000000000000001'
const config = { transferWaitMs: 20_000, partners } as const

let tempo: DevChain
let base: DevChain
let world: World
let org: Org
let relayer: BridgeRelayer
/** While set, the sandbox repeats its first quote. */
let remembered: { quoted?: Quoted } | undefined

beforeAll(async () => {
  ;[tempo, base] = await Promise.all([
    startChain({ network: 'tempo-moderato' }),
    startChain({ network: 'base-sepolia' }),
  ])
  await Promise.all([fundSandbox(tempo), fundSandbox(base)])
  relayer = createBridgeRelayer([tempo, base])
  world = await aWorld({
    chains: [tempo, base],
    config,
    boot: { routing: (opened) => ({ ...opened, test: steady(opened.test) }) },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([tempo?.stop(), base?.stop()])
})
beforeEach(() => {
  remembered = undefined
})

function steady({ sandbox }: RoutingPartners['test']): RoutingPartners['test'] {
  if (sandbox === undefined) return {}
  const quote: typeof sandbox.quote = async (request) => {
    const quoted = remembered?.quoted ?? (await sandbox.quote(request))
    if (remembered !== undefined) remembered.quoted = quoted
    return quoted
  }
  return { sandbox: { ...sandbox, quote } }
}

interface Managed {
  readonly id: string
  readonly address: Address
}

async function aMaster(at: World = world, key = org.testKey): Promise<Managed> {
  const { body } = await at.call(key, 'POST', masters, { chain: 'tempo', supportedTokens: ['AlphaUSD', 'pathUSD'] })
  return { id: String(body.id), address: body.address as Address }
}

function swapOf(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'AlphaUSD', toChain: 'tempo', toToken: 'pathUSD', amount: '10', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

const send = (body: object): Promise<Answer> => world.call(org.testKey, 'POST', path, body)
const alpha = (address: Address) => tokenBalance(tempo, 'AlphaUSD', address)
const client = () => createPublicClient({ transport: http(tempo.rpcUrl) })

function allowanceOf(owner: Address, spender: Address): Promise<bigint> {
  return client().readContract({ address: alphaUsd, abi: erc20Abi, functionName: 'allowance', args: [owner, spender] })
}

const Sent = z.object({ type: z.string(), feeToken: z.string(), calls: z.array(z.object({ to: z.string() })) })

async function node(method: string, ...params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(tempo.rpcUrl, { method: 'POST', headers, body })
  return z.object({ result: z.unknown() }).parse(await response.json()).result
}

test('one token of Tempo is swapped for another in one transaction, including approval, its fee paid in the token sold', async () => {
  const master = await aMaster()
  await fundToken(tempo, 'AlphaUSD', master.address, 20_000_000n)
  const body = swapOf(master)
  const sent = await send(body)
  expect([sent.status, sent.body.status, sent.body.route, sent.body.feeToken]).toEqual([
    201,
    'confirmed',
    'partner-swap',
    'AlphaUSD',
  ])
  const arrived = await tokenBalance(tempo, 'pathUSD', body.toAddress)
  expect(arrived).toBeGreaterThan(9_900_000n)
  expect(sent.body.toAmount).toBe(formatAmount(arrived, 6))
  expect(20_000_000n - (await alpha(master.address))).toBe(10_000_000n + rawOf(sent.body.feeAmount))
  expect(await allowanceOf(master.address, sandboxPoolAddress)).toBe(0n)
  const { type, feeToken, calls } = Sent.parse(await node('eth_getTransactionByHash', sent.body.txHash))
  expect([type, feeToken]).toEqual(['0x76', alphaUsd.toLowerCase()])
  expect(calls.map(({ to }) => to)).toEqual([alphaUsd, sandboxPoolAddress].map((one) => one.toLowerCase()))
  expect(await client().getTransactionCount({ address: master.address })).toBe(1)
})

function rawOf(amount: unknown): bigint {
  const raw = parseAmount(String(amount), 6)
  if (typeof raw !== 'bigint') throw new Error(`no amount: ${raw}`)
  return raw
}

test('a bridge out of Tempo is answered once it has left, arrives, and then reserves nothing of the wallet', async () => {
  const master = await aMaster()
  await fundToken(tempo, 'AlphaUSD', master.address, 60_000_000n)
  const body = swapOf(master, { toChain: 'base', toToken: 'USDC', amount: '25' })
  const sent = await send(body)
  expect([sent.status, sent.body.status, sent.body.route, sent.body.toAmount]).toEqual([
    201,
    'pending',
    'partner-bridge',
    '24.975',
  ])
  expect((await send({ ...body, toAddress: stranger() })).status, 'the rest can be sent too').toBe(201)
  await relayer.pass()
  const state = async () => (await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)).body
  await expect.poll(async () => (await state()).status, { timeout: 60_000 }).toBe('confirmed')
  expect(await state()).toMatchObject({ toAmount: '24.975', feeToken: 'AlphaUSD', feeAmount: sent.body.feeAmount })
  expect(rawOf(sent.body.feeAmount)).toBeGreaterThan(0n)
  expect(await tokenBalance(base, 'USDC', body.toAddress)).toBe(24_975_000n)
})

test('a child on Tempo swaps by itself: it needs no top-up for its fee', async () => {
  const master = await aMaster()
  const made = await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(made.body.id), address: made.body.address as Address }
  await fundToken(tempo, 'AlphaUSD', child.address, 11_000_000n)
  const body = swapOf(child)
  const sent = await send(body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await alpha(child.address)).toBe(1_000_000n - rawOf(sent.body.feeAmount))
  expect(await client().getTransactionCount({ address: master.address })).toBe(0)
})

test('the fee is added to the amount, to the unit', async () => {
  const master = await aMaster()
  const body = swapOf(master)
  remembered = {}
  // One unit more than the amount: clearing a balance would refund gas.
  await fundToken(tempo, 'AlphaUSD', master.address, 10_000_001n)
  // Blocks without transactions bring the base fee to its minimum, where it stays.
  await node('anvil_mine', '0x200')
  const short = await send(body)
  expect([short.status, codeOf(short)]).toEqual([422, 'insufficient-balance'])
  const [{ token, required, available }] = z
    .tuple([z.object({ token: z.string(), required: z.string(), available: z.string() })])
    .parse(short.body.balances)
  expect([token, available]).toEqual(['AlphaUSD', '10.000001'])
  const missing = rawOf(required) - 10_000_001n
  expect(missing).toBeGreaterThan(0n)
  await fundToken(tempo, 'AlphaUSD', master.address, missing - 1n)
  const still = await send(body)
  expect([still.status, still.body.balances]).toEqual([
    422,
    [{ token: 'AlphaUSD', required, available: formatAmount(rawOf(required) - 1n, 6) }],
  ])
  await fundToken(tempo, 'AlphaUSD', master.address, 1n)
  const sent = await send(body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
})

test('a swap that another process sends after the market moved fails with its fee spent, its money in place and no allowance left', async () => {
  const planning = await aWorld({ chains: [tempo, base], config: { ...config, role: 'api', transferWaitMs: 0 } })
  try {
    const own = await planning.organisation()
    const master = await aMaster(planning, own.testKey)
    await fundToken(tempo, 'AlphaUSD', master.address, 20_000_000n)
    const body = swapOf(master)
    const sent = await planning.call(own.testKey, 'POST', path, body)
    expect([sent.status, sent.body.status, sent.body.txHash]).toEqual([201, 'pending', null])
    await moveMarket()
    await planning.another({ role: 'work' })
    const state = async () => (await planning.call(own.testKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)).body
    await expect.poll(async () => (await state()).status, { timeout: 60_000 }).toBe('failed')
    const { reason, feeAmount, txHash } = await state()
    expect([reason, txHash]).toEqual(['reverted', expect.stringMatching(/^0x/)])
    expect(await alpha(master.address)).toBe(20_000_000n - rawOf(feeAmount))
    expect(await allowanceOf(master.address, sandboxPoolAddress)).toBe(0n)
    expect(await tokenBalance(tempo, 'pathUSD', body.toAddress)).toBe(0n)
  } finally {
    await planning.stop()
  }
})

/** Another swap moves the price. */
async function moveMarket(): Promise<void> {
  const rawAmount = 1_000_000n * 1_000_000n
  const approve = encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [sandboxPoolAddress, rawAmount] })
  await sendFromDevAccount(tempo, alphaUsd, approve)
  const abi = parseAbi(['function swap(bytes32, address, uint256, address, uint256, address)'])
  const pathUsd = tempo.tokens.pathUSD ?? '0x'
  const args = [generatePrivateKey(), alphaUsd, rawAmount, pathUsd, 1n, stranger()] as const
  await sendFromDevAccount(tempo, sandboxPoolAddress, encodeFunctionData({ abi, functionName: 'swap', args }))
}

test('a waiting transaction is raised only from money that its wallet may spend: not from what another transfer has reserved', async () => {
  const planning = await aWorld({ chains: [tempo, base], config: { ...config, role: 'api', transferWaitMs: 0 } })
  try {
    const own = await planning.organisation()
    const master = await aMaster(planning, own.testKey)
    await fundToken(tempo, 'AlphaUSD', master.address, 20_000_000n)
    const sendOf = (amount: string) =>
      planning.call(own.testKey, 'POST', path, swapOf(master, { toToken: 'AlphaUSD', amount }))
    expect(codeOf(await sendOf('10'))).toBe('')
    const { db } = planning.database
    const { id } = await db.one(
      z.object({ id: z.templateLiteral(['ctx_', z.string()]) }),
      sql`select id from chain_transactions where sender = ${master.address}`,
    )
    const { coverRaise, purpose } = transferHandler(planning.server.deps)
    const transaction = { id, network: 'tempo-moderato', purpose, nonce: 0n, hash: '0x' } as const
    const mayPay = async (dollars: bigint): Promise<boolean | undefined> => {
      const covers = await coverRaise?.(transaction, dollars * 10n ** 18n)
      return covers === undefined ? undefined : db.tx(covers)
    }
    expect([await mayPay(9n), await mayPay(10n)]).toEqual([true, false])
    expect(codeOf(await sendOf('8'))).toBe('')
    expect([await mayPay(1n), await mayPay(2n)]).toEqual([true, false])
  } finally {
    await planning.stop()
  }
})
