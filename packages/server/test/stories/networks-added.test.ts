import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { RunningServer } from '../../src/boot.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { masters, path, patient, stranger, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, type Org, request, type World } from '../world.ts'

let base: DevChain
let added: DevChain
let world: World
let org: Org
let screening: FakeScreening

beforeAll(async () => {
  ;[base, added] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'optimism-sepolia' }),
  ])
  screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [base], config: { transferWaitMs: 20_000 }, boot: { screening } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([base?.stop(), added?.stop()])
})

async function aMaster(): Promise<{ readonly id: string; readonly address: Address }> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  return { id: String(body.id), address: body.address as Address }
}

let server: { readonly base: string; readonly server: RunningServer }

function ask(method: string, at: string, body: unknown): Promise<Answer> {
  return request(server.base, { key: org.testKey, method, path: at, body })
}

function send(from: { readonly id: string }, amount: string): Promise<Answer> {
  const ends = { fromChain: 'optimism', fromToken: 'USDC', toChain: 'optimism', toToken: 'USDC' }
  return ask('POST', path, { fromWalletId: from.id, amount, toAddress: stranger(), ...ends })
}

const short = (response: Answer) => [response.status, response.body.code ?? response.body.type, response.body.balances]

test('money that came before a network was followed cannot leave until its transaction is rescanned and its sender screened', async () => {
  const [clean, tainted] = [await aMaster(), await aMaster()]
  for (const { address } of [clean, tainted]) await fundNative(added, address, 10n ** 18n)
  const before = await fundToken(added, 'USDC', clean.address, 5_000_000n)
  const flagged = await fundToken(added, 'USDC', tainted.address, 7_000_000n)
  // More blocks than the first pass reads.
  await createTestClient({ mode: 'anvil', transport: http(added.rpcUrl) }).mine({ blocks: 700 })

  const rpcUrls = { 'base-sepolia': [base.rpcUrl], 'optimism-sepolia': [added.rpcUrl] }
  server = await world.another({ rpcUrls })
  await fundNative(added, server.server.settlerAddress as Address, 10n ** 20n)
  await untilBooked(world, added)

  expect(short(await send(clean, '1'))).toMatchObject([422, expect.anything(), [{ available: '0', held: '5' }]])
  await fundToken(added, 'USDC', clean.address, 2_000_000n)
  await untilBooked(world, added)
  expect((await send(clean, '2')).status, 'money that came since is booked').toBe(201)
  expect(short(await send(clean, '1'))).toMatchObject([422, expect.anything(), [{ available: '0', held: '5' }]])

  const rescan = (txHash: string) => ask('POST', '/wallet-infra/deposits/rescan', { chain: 'optimism', txHash })
  const found = await rescan(before)
  expect(found.body.transactions).toMatchObject([{ amount: '5' }])
  await untilBooked(world, added)
  await expect.poll(async () => (await send(clean, '5')).status, patient).toBe(201)
  expect(await tokenBalance(added, 'USDC', clean.address)).toBe(0n)

  const [{ from } = { from: '' }] = found.body.transactions as { readonly from: string }[]
  screening.setResult(from, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  expect((await rescan(flagged)).status).toBe(200)
  await untilBooked(world, added)
  expect((await send(tainted, '1')).status).toBe(422)
  expect(await tokenBalance(added, 'USDC', tainted.address)).toBe(7_000_000n)
}, 120_000)
