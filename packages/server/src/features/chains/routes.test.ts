import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, codeOf, type Org, type World } from '../../../test/world.ts'

let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld({ rpcUrls: { 'base-sepolia': ['http://127.0.0.1:1'] } })
  org = await world.organisation()
})
afterAll(() => world.stop())

const path = '/wallet-infra/chains'

test('a test key sees all nine chain names, each on its test network', async () => {
  const { status, list } = await world.call(org.testKey, 'GET', path)
  expect(status).toBe(200)
  expect(list.map((chain) => [chain.name, chain.network])).toEqual([
    ['base', 'eip155:84532'],
    ['ethereum', 'eip155:11155111'],
    ['optimism', 'eip155:11155420'],
    ['arbitrum', 'eip155:421614'],
    ['polygon', 'eip155:80002'],
    ['tempo', 'eip155:42431'],
    ['base-sepolia', 'eip155:84532'],
    ['eth-sepolia', 'eip155:11155111'],
    ['tempo-moderato', 'eip155:42431'],
  ])
  expect(list.every((chain) => chain.isTestnet === true)).toBe(true)
  expect(list[0]).toEqual({
    name: 'base',
    chainId: 84532,
    network: 'eip155:84532',
    isTestnet: true,
    nativeCoin: { symbol: 'ETH', decimals: 18 },
    explorerUrl: 'https://sepolia.basescan.org',
    configured: true,
    status: expect.stringMatching(/^(unknown|down)$/),
  })
  expect(list.filter((chain) => chain.configured).map((chain) => chain.name)).toEqual(['base', 'base-sepolia'])
  expect(list.find((chain) => chain.name === 'tempo')?.nativeCoin).toBeNull()
})

test('a live key sees only the six mainnets', async () => {
  const { list } = await world.call(org.liveKey, 'GET', path)
  expect(list.map((chain) => chain.chainId)).toEqual([8453, 1, 10, 42161, 137, 4217])
  expect(list.some((chain) => chain.isTestnet || chain.configured || chain.status !== null)).toBe(false)
})

test('tokens are those of the network that the name means for the key', async () => {
  const test = await world.call(org.testKey, 'GET', `${path}/base/tokens`)
  expect(test.list).toEqual([
    {
      symbol: 'USDC',
      name: 'USD Coin',
      address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
      decimals: 6,
      eip3009: true,
      eip712: { name: 'USDC', version: '2' },
    },
  ])
  const live = await world.call(org.liveKey, 'GET', `${path}/ethereum/tokens`)
  expect(live.list.map((token) => [token.symbol, token.eip3009, token.eip712])).toEqual([
    ['USDC', true, { name: 'USD Coin', version: '2' }],
    ['USDT', false, null],
  ])
})

test('an unknown chain is 404 and a live key’s test chain 422', async () => {
  const unknown = await world.call(org.testKey, 'GET', `${path}/solana/tokens`)
  expect([unknown.status, codeOf(unknown)]).toEqual([404, 'chain-not-found'])
  const unavailable = await world.call(org.liveKey, 'GET', `${path}/base-sepolia/tokens`)
  expect([unavailable.status, codeOf(unavailable)]).toEqual([422, 'chain-not-available'])
})

test('the list of chains is paged as every list', async () => {
  const names: unknown[] = []
  let next: string | undefined = `${path}?limit=4`
  for (let pages = 0; next !== undefined && pages < 5; pages++) {
    const page = await world.call(org.testKey, 'GET', next)
    names.push(...page.list.map((chain) => chain.name))
    next = /^<([^>]+)>/.exec(page.headers.get('link') ?? '')?.[1]
  }
  expect(names).toHaveLength(9)
  expect(new Set(names).size).toBe(9)
  const foreign = Buffer.from('byw_01h455vb4pex5vsknk084sn02q').toString('base64url')
  expect((await world.call(org.testKey, 'GET', `${path}?cursor=${foreign}`)).status).toBe(422)
})
