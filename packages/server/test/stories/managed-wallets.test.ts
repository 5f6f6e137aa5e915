import {
  type DevChain,
  type FaultProxy,
  fundNative,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aTempoPayer, offerOf } from '../tempo-payer.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type World } from '../world.ts'

let base: DevChain
let tempo: DevChain
let node: FaultProxy
let world: World
let org: Org
/** The instant at which a test has stopped the clock. */
let stoodStillMs: number | undefined

beforeAll(async () => {
  ;[base, tempo] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  node = await startFaultProxy(base.rpcUrl)
  world = await aWorld({
    boot: { clock: { now: () => new Date(stoodStillMs ?? Date.now()) } },
    chains: [base, tempo],
    rpcUrls: { 'base-sepolia': [node.url] },
    config: { settleWaitMs: 20_000 },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await node?.stop()
  await Promise.all([base?.stop(), tempo?.stop()])
})

const masters = '/wallet-infra/master-wallets'
const resource = 'https://api.example.com/weather'

interface Managed {
  readonly id: string
  readonly path: string
  readonly address: Address
}

async function aMaster(chain: string, supportedTokens: readonly string[]): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain, supportedTokens })
  return { id: String(body.id), path: `${masters}/${body.id}`, address: body.address as Address }
}

async function aChild(master: Managed): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', `${master.path}/child-addresses`, {})
  return { id: String(body.id), path: `${master.path}/child-addresses/${body.id}`, address: body.address as Address }
}

function balances(of: Managed): Promise<Answer> {
  return world.call(org.testKey, 'GET', `${of.path}/balances`)
}

function challenge(wallet: Managed): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price: '0.01' })
}

function verify(wallet: Managed, protocol: 'x402' | 'mpp', credential: string): Promise<Answer> {
  const body = { protocol, credential, price: '0.01', walletId: wallet.id, resource }
  return world.call(org.testKey, 'POST', '/payments/verify', body)
}

test('a payment by x402 to a child address, and one to its master, settle there', async () => {
  const master = await aMaster('base', ['USDC'])
  for (const wallet of [await aChild(master), master]) {
    const payer = await aPayer(base)
    const verified = await verify(wallet, 'x402', await payer.credential(await challenge(wallet)))
    expect([verified.status, verified.body.payer]).toEqual([200, payer.account.address])
    const { paymentId, settlementToken } = verified.body
    const settled = await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
    expect(settled.status).toBe(200)
    expect(await tokenBalance(base, 'USDC', wallet.address)).toBe(10_000n)
    const logs = await world.call(org.testKey, 'GET', `/payments/logs?walletId=${wallet.id}`)
    expect(logs.list).toMatchObject([{ paymentId, walletId: wallet.id, status: 'settled' }])
  }
})

test('a payment by MPP to a managed wallet on Tempo arrives there, and its balances show no native coin', async () => {
  const master = await aMaster('tempo', ['pathUSD', 'AlphaUSD'])
  const child = await aChild(master)
  for (const wallet of [master, child]) {
    const payer = await aTempoPayer(tempo)
    const verified = await verify(wallet, 'mpp', await payer.pull(offerOf(await challenge(wallet))))
    expect(verified.status).toBe(200)
    await expect.poll(() => tokenBalance(tempo, 'pathUSD', wallet.address)).toBe(10_000n)
    expect((await balances(wallet)).list).toEqual([
      { tokenSymbol: 'pathUSD', formattedBalance: '0.01', rawBalance: '10000', chain: 'tempo' },
      { tokenSymbol: 'AlphaUSD', formattedBalance: '0', rawBalance: '0', chain: 'tempo' },
    ])
  }
})

test('another organisation’s payments cannot go to this one’s wallets', async () => {
  const child = await aChild(await aMaster('base', ['USDC']))
  const other = await world.organisation()
  const requested = { walletId: child.id, resource, price: '0.01' }
  const refused = await world.call(other.testKey, 'POST', '/payments/challenge', requested)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'wallet-not-found'])
})

test('a facilitator’s payment to a child address is recorded as that child’s', async () => {
  const child = await aChild(await aMaster('base', ['USDC']))
  const { receivingWallets } = world.server.deps
  const network = base.network
  const tenant = { organisationId: org.id, environment: 'test' as const }
  const found = await receivingWallets.find(tenant, child.id as `cad_${string}`)
  if (found === undefined) throw new Error('no such child')
  expect(found.network.name).toBe(network)
  expect(await receivingWallets.findByAddress(tenant, found.network, child.address)).toEqual(found)
  expect(await receivingWallets.findByAddress({ ...tenant, environment: 'live' }, found.network, child.address)).toBe(
    undefined,
  )
})

const funds = 1_234_567n

test.each(['master', 'child', 'byo'] as const)(
  'a %s wallet’s balances are the native coin and its tokens',
  async (kind) => {
    const master = await aMaster('base', ['USDC'])
    const own = await world.wallet(org, { chain: 'base' })
    const byo = { ...own, path: `/wallet-infra/byo-wallets/${own.id}` }
    const wallet = kind === 'byo' ? byo : kind === 'child' ? await aChild(master) : master
    await fundToken(base, 'USDC', wallet.address, funds)
    await fundNative(base, wallet.address, 1_500_000_000_000_000_001n)
    const response = await balances(wallet)
    expect(response.list).toEqual([
      {
        tokenSymbol: 'ETH',
        formattedBalance: '1.500000000000000001',
        rawBalance: '1500000000000000001',
        chain: 'base',
      },
      { tokenSymbol: 'USDC', formattedBalance: '1.234567', rawBalance: '1234567', chain: 'base' },
    ])
  },
)

test('fifty callers within one block cost the node one call', async () => {
  const child = await aChild(await aMaster('base', ['USDC']))
  const before = node.methods.length
  stoodStillMs = Date.now()
  const answers = await Promise.all(Array.from({ length: 50 }, () => balances(child))).finally(() => {
    stoodStillMs = undefined
  })
  expect(new Set(answers.map(({ list }) => JSON.stringify(list))).size).toBe(1)
  expect(node.methods.slice(before).filter((method) => method === 'eth_call')).toHaveLength(1)
})

test.each(['hang', 'drop', 'error500', 'garbage', 'wrong', 'rate-limit'] as const)(
  'while the node does %s, balances are 503 chain-unavailable, and right again afterwards',
  async (mode) => {
    const child = await aChild(await aMaster('base', ['USDC']))
    await fundToken(base, 'USDC', child.address, funds)
    node.set(mode)
    const ill = await balances(child)
    node.set('pass')
    expect([ill.status, codeOf(ill)]).toEqual([503, 'chain-unavailable'])
    expect(ill.headers.get('retry-after')).not.toBeNull()
    expect((await balances(child)).list[1]).toMatchObject({ rawBalance: funds.toString() })
  },
)

test('a chain without a node is 503 chain-not-configured', async () => {
  const response = await balances(await aMaster('polygon', ['USDC']))
  expect([response.status, codeOf(response)]).toEqual([503, 'chain-not-configured'])
})
