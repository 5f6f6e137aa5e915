import { type DevChain, fundToken, installRelayDepository, startChain, tokenBalance } from '@purser/devnet'
import { formatAmount, parseAmount } from '@purser/protocol'
import { type Address, encodeFunctionData, erc20Abi, parseAbi } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { relayDepository } from '../../src/partners/routing/relay.ts'
import { relayOrder } from '../partner-calls.ts'
import { aPartner, type PartnerDouble, type PartnerRequest, type PartnerResponse } from '../partner-double.ts'
import { masters, path, stranger } from '../partner-stage.ts'
import { endOn } from '../routes.ts'
import { createFakeScreening } from '../screening-double.ts'
import { untilBooked } from '../transfer-stage.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

const pathUsd: Address = '0x20C0000000000000000000000000000000000000'
const usdcOnBase: Address = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
const id = `0x${'cd'.repeat(32)}` as const
const depositAbi = parseAbi(['function depositErc20(address depositor, address token, uint256 amount, bytes32 id)'])

let tempo: DevChain
let relay: PartnerDouble
let world: World
let org: Org
/** Relay's status of the deposit, and whether its quote pays another contract. */
let status: string
let payTo: Address

beforeAll(async () => {
  tempo = await startChain({ network: 'tempo' })
  await installRelayDepository(tempo, relayDepository)
  relay = await aPartner(answered)
  world = await aWorld({
    chains: [tempo],
    config: { transferWaitMs: 20_000, partners: { relay: { baseUrl: relay.url, apiKey: 'rk' } } },
    boot: { screening: createFakeScreening(() => new Date()) },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await relay?.stop()
  await tempo?.stop()
})
beforeEach(() => {
  status = 'waiting'
  payTo = relayDepository
})

const Body = z.object({ user: z.string(), recipient: z.string(), amount: z.string() })

function answered({ path: requested, body }: PartnerRequest): PartnerResponse {
  if (requested !== '/quote/v2') return { json: { status, txHashes: [`0x${'ab'.repeat(32)}`] } }
  const { user, recipient, amount } = Body.parse(body)
  const rawAmount = BigInt(amount)
  const step = (name: string, to: Address, data: string) => ({
    id: name,
    kind: 'transaction',
    requestId: id,
    items: [{ status: 'incomplete', data: { from: user, to, data, value: '0', chainId: tempo.chainId } }],
  })
  const approval = encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [payTo, rawAmount] })
  const ends = { from: endOn('tempo', 'pathUSD'), to: endOn('base', 'USDC') }
  const people = { fromAddress: user as Address, toAddress: recipient as Address }
  const order = relayOrder({ ...ends, ...people, rawAmount }, { least: (rawAmount * 997n) / 1_000n })
  const args = [user as Address, pathUsd, rawAmount, order.id] as const
  const deposit = encodeFunctionData({ abi: depositAbi, functionName: 'depositErc20', args })
  const currency = (chainId: number, address: Address) => ({ chainId, address })
  return {
    json: {
      steps: [step('approve', pathUsd, approval), step('deposit', payTo, deposit)],
      protocol: { v2: { orderId: order.id, orderData: order.data } },
      fees: { relayer: { currency: { symbol: 'USDC' }, amount: '10000' } },
      details: {
        recipient,
        currencyIn: { currency: currency(4_217, pathUsd), amount },
        currencyOut: {
          currency: currency(8_453, usdcOnBase),
          amount: (rawAmount - 10_000n).toString(),
          minimumAmount: ((rawAmount * 997n) / 1_000n).toString(),
        },
      },
    },
  }
}

async function aMaster(): Promise<{ readonly id: string; readonly address: Address }> {
  const { body } = await world.call(org.liveKey, 'POST', masters, { chain: 'tempo', supportedTokens: ['pathUSD'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundToken(tempo, 'pathUSD', master.address, 50_000_000n)
  await untilBooked(world, tempo)
  return master
}

function bridgeOf({ id: fromWalletId }: { readonly id: string }) {
  const to = { toChain: 'base', toToken: 'USDC', toAddress: stranger() }
  return { fromWalletId, fromToken: 'pathUSD', amount: '30', ...to }
}

test('live money leaves Tempo by one deposit at Relay, and the transfer ends when Relay reports the payout', async () => {
  const master = await aMaster()
  const body = bridgeOf(master)
  const sent = await world.call(org.liveKey, 'POST', path, body)
  expect([sent.status, sent.body.status, sent.body.route]).toEqual([201, 'pending', 'partner-bridge'])
  expect(sent.body.routeReason).toMatch(/Relay serves Tempo\. Relay keeps 0\.01 USDC/)
  const requested = relay.requested.find((one) => one.path === '/quote/v2')
  expect(requested?.body).toMatchObject({ originChainId: 4_217, destinationChainId: 8_453, refundTo: master.address })
  expect(await tokenBalance(tempo, 'pathUSD', relayDepository)).toBe(30_000_000n)
  const fee = parseAmount(String(sent.body.feeAmount), 6)
  const left = await tokenBalance(tempo, 'pathUSD', master.address)
  expect([sent.body.feeToken, fee]).toEqual(['pathUSD', 20_000_000n - left])
  status = 'success'
  const state = async () => (await world.call(org.liveKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)).body
  await expect.poll(async () => (await state()).status, { timeout: 60_000 }).toBe('confirmed')
  expect(await state()).toMatchObject({ toAmount: formatAmount(29_990_000n, 6), txHash: sent.body.txHash })
  expect(relay.requested.at(-1)).toMatchObject({ path: '/intents/status/v3', query: { requestId: id } })
})

test('a Relay quote that pays another contract on Tempo is refused, and nothing is signed', async () => {
  const master = await aMaster()
  payTo = stranger()
  const refused = await world.call(org.liveKey, 'POST', path, bridgeOf(master))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([503, 'partner-unavailable', 'unsafe-call'])
  expect(await tokenBalance(tempo, 'pathUSD', master.address)).toBe(50_000_000n)
})

test('an order that Relay quotes for several transfers is paid for one of them, and the money of the others stays', async () => {
  const master = await aMaster()
  const body = { ...bridgeOf(master), amount: '10' }
  const before = await tokenBalance(tempo, 'pathUSD', relayDepository)
  const together = await Promise.all([1, 2].map(() => world.call(org.liveKey, 'POST', path, body)))
  const later = await world.call(org.liveKey, 'POST', path, body)
  expect([...together.map(({ status }) => status).toSorted(), later.status]).toEqual([201, 503, 503])
  expect([codeOf(later), later.body.reason]).toEqual(['partner-unavailable', 'unsafe-call'])
  expect((await tokenBalance(tempo, 'pathUSD', relayDepository)) - before).toBe(10_000_000n)
})
