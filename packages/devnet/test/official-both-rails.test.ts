import { decodePaymentRequiredHeader } from '@x402/core/http'
import { Challenge } from 'mppx'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { aTempoWallet } from '../../server/test/tempo-payer.ts'
import { aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundFees, fundToken, tokenBalance } from '../src/faucet.ts'
import { fetchAgent, fetchV1Agent, mppxEvmAgent, mppxTempoAgent } from './official-agents.ts'
import { logsOf } from './official-ledger.ts'
import { expressShop, type PaidShop } from './paid-shops.ts'

const rawPrice = 10_000n

let base: DevChain
let tempo: DevChain
let world: World
let org: Org
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  tempo = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [base, tempo] })
  org = await world.organisation()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
  await tempo?.stop()
})

/** A route that may be paid to a wallet on Base or to one on Tempo. */
async function stage() {
  const onBase = await world.wallet(org)
  const onTempo = await aTempoWallet(world, org)
  const till = { apiKey: org.testKey, baseUrl: world.base, walletId: onBase.id, otherWalletIds: [onTempo.id] }
  const shop: PaidShop = await expressShop(till)
  cleanUps.push(shop.stop)
  return { shop, onBase, onTempo }
}

test('one 402 offers both wallets: x402 on Base, MPP on Base and on Tempo, the first wallet first', async () => {
  const { shop, onBase, onTempo } = await stage()
  const requested = await fetch(`${shop.url}/report`)
  const { accepts } = decodePaymentRequiredHeader(requested.headers.get('payment-required') ?? '')
  expect(accepts).toMatchObject([{ network: 'eip155:84532', payTo: onBase.address }])
  const offers = Challenge.fromResponseList(requested)
  expect(offers.map(({ method }) => method).slice(0, 2)).toEqual(['evm', 'tempo'])
  expect(offers[0]?.request).toMatchObject({ recipient: onBase.address, methodDetails: { chainId: 84532 } })
  expect(offers[1]?.request).toMatchObject({ recipient: onTempo.address, methodDetails: { chainId: 42431 } })
  expect(offers.length).toBeLessThanOrEqual(4)
})

test('the official clients of x402 v2, x402 v1, MPP on Base and MPP on Tempo pay the same route, each to the wallet of its rail', async () => {
  const { shop, onBase, onTempo } = await stage()
  const [v2, v1, evm] = await Promise.all([aPayer(base), aPayer(base), aPayer(base)])
  const onTempoPayer = await aPayer()
  await fundToken(tempo, 'pathUSD', onTempoPayer.account.address, 1_000_000n)
  await fundFees(tempo, onTempoPayer.account.address)
  const token = base.tokens.USDC ?? '0x'
  const usdc = { chainId: base.chainId, token, authorization: { name: 'USDC', version: '2' } }
  const agents = [
    fetchAgent({ account: v2.account }),
    fetchV1Agent({ account: v1.account }),
    mppxEvmAgent({ account: evm.account }, usdc),
    mppxTempoAgent({ account: onTempoPayer.account }, tempo.rpcUrl),
  ]
  const calls = await Promise.all(agents.map((agent) => agent.call(`${shop.url}/report`)))

  expect(calls.map(({ status, body }) => [status, body])).toEqual(agents.map(() => [200, { report: 'all is well' }]))
  expect(await tokenBalance(base, 'USDC', onBase.address)).toBe(3n * rawPrice)
  expect(await tokenBalance(tempo, 'pathUSD', onTempo.address)).toBe(rawPrice)
  expect(await logsOf(world, org, onTempo.id)).toMatchObject([
    { protocol: 'mpp', status: 'settled', chain: 'tempo-moderato', payer: onTempoPayer.account.address },
  ])
  const logs = await logsOf(world, org, onBase.id)
  expect(logs.map(({ protocol }) => protocol).sort()).toEqual(['mpp', 'x402', 'x402'])
  expect(shop.faults).toEqual([])
})

test('a credential never pays for a wallet that is not on the route', async () => {
  const { shop } = await stage()
  const { shop: other } = await stage()
  const payer = await aPayer(base)
  const { sent } = await fetchAgent({ account: payer.account }).call(`${shop.url}/report`)
  const shown = await fetch(`${other.url}/report`, { headers: sent })
  expect(shown.status).toBe(402)
  expect(other.served).toEqual([])
})
