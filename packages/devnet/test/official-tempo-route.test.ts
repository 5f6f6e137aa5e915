import { Challenge, Credential } from 'mppx'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { aTempoWallet, fundSponsor } from '../../server/test/tempo-payer.ts'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundFees, tokenBalance } from '../src/faucet.ts'
import { mppxTempoAgent } from './official-agents.ts'
import { logsOf } from './official-ledger.ts'
import { expressShop, type PaidShop, type ShopAccount, shops } from './paid-shops.ts'

const rawPrice = 10_000n
/** The maximum fee of a transfer: five cents, in the smallest unit. */
const feeMax = 50_000n

let chain: DevChain
let world: World
let org: Org
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const frameworks = Object.entries(shops)
const modes = ['pull', 'push'] as const
const ways = frameworks.flatMap(([framework, openShop]) => modes.map((mode) => ({ framework, openShop, mode })))

describe.each(ways)('the official mppx client by $mode at a Tempo route behind $framework', ({ openShop, mode }) => {
  test('pays, is answered once, and the receipt it decodes names the transaction that moved the money', async () => {
    const { shop, wallet, payer } = await stage({}, openShop)
    const before = await balanceOf(payer)
    const call = await mppxTempoAgent({ account: payer }, chain.rpcUrl, mode).call(`${shop.url}/report`)

    expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
    expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(rawPrice)
    const spent = before - (await balanceOf(payer))
    // Without a sponsor the fee comes on top.
    expect(spent > rawPrice && spent < rawPrice + feeMax).toBe(true)
    const [log, ...others] = await logsOf(world, org, wallet.id)
    expect(others).toEqual([])
    expect(log).toMatchObject({ status: 'settled', protocol: 'mpp', amount: '0.01', token: 'pathUSD' })
    expect(call.receipt).toMatchObject({ status: 'success', method: 'tempo', reference: log?.txHash })

    const replay = await fetch(`${shop.url}/report`, { headers: call.sent })
    expect([replay.status, await replay.json()]).toMatchObject([409, { code: 'duplicate-payment' }])
    expect(shop.served).toEqual([payer.address])
    expect(shop.faults).toEqual([])
  })
})

test('a sponsored payment costs the official mppx client its price and no fee; the service pays the fee', async () => {
  const { base, server } = await world.another({ sponsorTempoFees: true })
  await fundSponsor(chain, server.settlerAddress)
  const { shop, wallet, payer } = await stage({ baseUrl: base })
  const [offer] = Challenge.fromResponseList(await fetch(`${shop.url}/report`))
  expect(offer?.request).toMatchObject({ methodDetails: { feePayer: true } })
  const [payerBefore, sponsorBefore] = [await balanceOf(payer), await balanceOf({ address: server.settlerAddress })]
  const call = await mppxTempoAgent({ account: payer }, chain.rpcUrl).call(`${shop.url}/report`)

  expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
  expect(payerBefore - (await balanceOf(payer))).toBe(rawPrice)
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(rawPrice)
  expect(await balanceOf({ address: server.settlerAddress })).toBeLessThan(sponsorBefore)
  const [log] = await logsOf(world, org, wallet.id)
  expect(call.receipt).toMatchObject({ status: 'success', method: 'tempo', reference: log?.txHash })
})

test('a price of zero is answered with a proof, once: no money moves and the receipt names the challenge', async () => {
  const { shop, wallet, payer } = await stage({ price: '0' })
  const requested = await fetch(`${shop.url}/report`)
  expect([requested.status, requested.headers.get('payment-required')]).toEqual([402, null])
  const before = await balanceOf(payer)
  const call = await mppxTempoAgent({ account: payer }, chain.rpcUrl).call(`${shop.url}/report`)

  expect([call.status, call.body]).toEqual([200, { report: 'all is well' }])
  expect(await balanceOf(payer)).toBe(before)
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(0n)
  const { id } = challengeIn(call.sent)
  expect(call.receipt).toMatchObject({ status: 'success', method: 'tempo', reference: id })

  const again = await fetch(`${shop.url}/report`, { headers: call.sent })
  expect([again.status, await again.json()]).toMatchObject([409, { code: 'duplicate-payment' }])
  expect(shop.served).toEqual([payer.address])
  expect(await logsOf(world, org, wallet.id)).toMatchObject([
    { amount: '0', protocol: 'mpp', payer: payer.address, txHash: null },
  ])
})

async function stage(till: Partial<ShopAccount> = {}, openShop: typeof expressShop = expressShop) {
  const wallet = await aTempoWallet(world, org)
  const payer: PrivateKeyAccount = privateKeyToAccount(generatePrivateKey())
  await fundFees(chain, payer.address)
  const shop: PaidShop = await openShop({ apiKey: org.testKey, baseUrl: world.base, walletId: wallet.id, ...till })
  cleanUps.push(shop.stop)
  return { shop, wallet, payer }
}

function balanceOf({ address }: { readonly address: string }): Promise<bigint> {
  return tokenBalance(chain, 'pathUSD', `0x${address.slice(2)}`)
}

/** The challenge that an MPP credential echoes. */
function challengeIn(sent: Readonly<Record<string, string>>): { readonly id: string } {
  const credential = Credential.deserialize(sent.authorization ?? '')
  return credential.challenge
}
