import { decodePaymentRequiredHeader } from '@x402/core/http'
import { Challenge } from 'mppx'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { PaymentRequirementsSchema } from 'x402/types'
import { aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import {
  type AgentOptions,
  axiosAgent,
  fetchAgent,
  fetchV1Agent,
  mppxEvmAgent,
  type PaidIn,
} from './official-agents.ts'
import { logsOf, transferOf, transfersIn } from './official-ledger.ts'
import { type expressShop, type PaidShop, shops } from './paid-shops.ts'

const rawPrice = 10_000n

let chain: DevChain
let world: World
let org: Org
let usdc: PaidIn
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  const token = chain.tokens.USDC ?? '0x'
  usdc = { chainId: chain.chainId, token, authorization: { name: 'USDC', version: '2' } }
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const frameworks = Object.entries(shops)

const x402Receipt = (network: string) => (txHash: unknown, payer: string) => ({
  success: true,
  transaction: txHash,
  network,
  payer,
})
const mppReceipt = (txHash: unknown) => ({ status: 'success', method: 'evm', reference: txHash })

/** Each kind of official client: the header of its payment, the protocol in the log, and the receipt that it decodes. */
const kinds = [
  [fetchAgent, 'payment-signature', 'x402', x402Receipt('eip155:84532')],
  [axiosAgent, 'payment-signature', 'x402', x402Receipt('eip155:84532')],
  [fetchV1Agent, 'x-payment', 'x402', x402Receipt('base-sepolia')],
  [(options: AgentOptions) => mppxEvmAgent(options, usdc), 'authorization', 'mpp', mppReceipt],
] as const

describe.each(frameworks)('one route behind our %s middleware, for clients of both protocols', (_name, openShop) => {
  test('answers with one 402 that the official parsers of x402 v2, x402 v1 and MPP read as the same price', async () => {
    const { shop, wallet } = await stage(openShop)
    const requested = await fetch(`${shop.url}/report`)
    const body = await requested.clone().json()

    expect(requested.status).toBe(402)
    expect(requested.headers.get('cache-control')).toBe('no-store')
    const required = decodePaymentRequiredHeader(requested.headers.get('payment-required') ?? '')
    expect(required).toMatchObject({ x402Version: 2, resource: { url: `${shop.url}/report` } })
    expect(required.accepts).toHaveLength(1)
    const terms = { amount: `${rawPrice}`, asset: usdc.token, payTo: wallet.address }
    expect(required.accepts[0]).toMatchObject({ scheme: 'exact', network: 'eip155:84532', ...terms })
    expect(body).toMatchObject({ x402Version: 1, status: 402, type: expect.stringContaining('payment-required') })
    const { maxAmountRequired, network, ...v1 } = PaymentRequirementsSchema.parse(body.accepts[0])
    expect([maxAmountRequired, network]).toEqual([terms.amount, 'base-sepolia'])
    expect(v1).toMatchObject({ asset: terms.asset, payTo: terms.payTo, resource: `${shop.url}/report` })
    const offers = Challenge.fromResponseList(requested)
    expect(offers).toMatchObject([{ method: 'evm', intent: 'charge', realm: '127.0.0.1' }])
    const charge = { amount: terms.amount, currency: terms.asset, recipient: terms.payTo }
    expect(offers[0]?.request).toMatchObject({ ...charge, methodDetails: { chainId: 84532, decimals: 6 } })
    expect(Date.parse(offers[0]?.expires ?? '')).toBeGreaterThan(Date.now())
  })

  test('is paid by @x402/fetch, @x402/axios, x402-fetch and mppx, and each decodes a receipt for the transaction that moved its money', async () => {
    const { shop, wallet } = await stage(openShop)
    const payers = await Promise.all(kinds.map(async () => (await aPayer(chain)).account))
    const before = await Promise.all(payers.map(({ address }) => tokenBalance(chain, 'USDC', address)))
    const calls = await Promise.all(
      kinds.map(([agentOf], index) => agentOf({ account: at(payers, index) }).call(`${shop.url}/report`)),
    )

    expect(calls.map(({ status, body }) => [status, body])).toEqual(kinds.map(() => [200, { report: 'all is well' }]))
    expect(calls.map(({ sent }) => Object.keys(sent))).toEqual(kinds.map(([, header]) => [header]))
    const spent = await Promise.all(
      payers.map(async ({ address }, index) => at(before, index) - (await tokenBalance(chain, 'USDC', address))),
    )
    expect(spent).toEqual(kinds.map(() => rawPrice))
    expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice * BigInt(kinds.length))

    const logs = await logsOf(world, org, wallet.id)
    expect(logs).toHaveLength(kinds.length)
    for (const [index, [, , protocol, receiptFor]] of kinds.entries()) {
      const { address } = at(payers, index)
      const log = logs.find(({ payer }) => payer === address)
      expect(log).toMatchObject({ protocol, status: 'settled', amount: '0.01', token: 'USDC' })
      // Payments that settle at the same time may share a transaction.
      expect(await transfersIn(chain, log?.txHash)).toContain(transferOf(address, wallet.address, rawPrice))
      expect(at(calls, index).receipt).toMatchObject(receiptFor(log?.txHash, address))
    }
    expect([...shop.served].sort()).toEqual(payers.map(({ address }) => address).sort())
    expect(shop.faults).toEqual([])
  })
})

async function stage(openShop: typeof expressShop) {
  const wallet = await world.wallet(org)
  const shop: PaidShop = await openShop({ apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id })
  cleanUps.push(shop.stop)
  return { shop, wallet }
}

function at<T>(list: readonly T[], index: number): T {
  const found = list[index]
  if (found === undefined) throw new Error(`nothing at ${index}`)
  return found
}
