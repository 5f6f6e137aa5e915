import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { type Address, createPublicClient, http } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type LyingNode, type NodeResponse, startLyingNode } from '../lying-node.ts'
import { type Answer, aPayer, aWorld, type CredentialChanges, type Org, type Payer, type World } from '../world.ts'

// Three nodes of one chain. The payer controls the first, which is used where one suffices: it answers from another chain, on which they are rich.
let chain: DevChain
let dream: DevChain
let hostile: LyingNode
let world: World
let org: Org
let wallet: { readonly id: string; readonly address: Address }

beforeAll(async () => {
  ;[chain, dream] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'base-sepolia' }),
  ])
  hostile = await startLyingNode(chain.rpcUrl)
  world = await aWorld({
    chains: [chain],
    rpcUrls: { 'base-sepolia': [hostile.url, chain.rpcUrl, chain.rpcUrl] },
    config: { settleWaitMs: 10_000, rpcTimeoutMs: 1_000 },
  })
  org = await world.organisation()
  wallet = await world.wallet(org)
})
afterEach(() => hostile.tellTheTruth())
afterAll(async () => {
  await world?.stop()
  await hostile?.stop()
  await Promise.all([chain?.stop(), dream?.stop()])
})

async function askDream(method: string, params: readonly unknown[]): Promise<NodeResponse> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(dream.rpcUrl, { method: 'POST', headers, body })
  const { id: _, jsonrpc: __, ...reply } = (await response.json()) as NodeResponse & Record<string, unknown>
  return reply as NodeResponse
}

function dreamOn(): void {
  for (const method of ['eth_call', 'eth_getCode']) hostile.lie(method, ({ params }) => askDream(method, params))
}

const terms = { resource: 'https://api.example.com/weather', price: '0.01' }

async function verify(payer: Payer, changes: CredentialChanges = {}): Promise<Answer> {
  const body = { ...terms, walletId: wallet.id }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', body)
  const credential = await payer.credential(challenge, changes)
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'x402', credential, ...body })
}

test('a payer whose node invents a balance has nothing verified, and costs the settler no gas', async () => {
  const payer = await aPayer()
  await fundToken(dream, 'USDC', payer.account.address, 1_000_000n)
  dreamOn()
  const refused = await verify(payer)
  expect([refused.status, refused.body.reason]).toEqual([402, 'invalid_exact_evm_insufficient_balance'])
  const address = world.server.settlerAddress as Address
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  expect(await client.getTransactionCount({ address })).toBe(0)
})

test('a payer with the money for one payment whose node invents a balance has one payment open at a time', async () => {
  const payer = await aPayer(chain, 10_000n)
  await fundToken(dream, 'USDC', payer.account.address, 1_000_000n)
  dreamOn()
  const answers = [await verify(payer), await verify(payer), await verify(payer)]
  expect(answers.map(({ status }) => status)).toEqual([200, 402, 402])
})

test('an account without code whose node invents a contract that accepts every signature has nothing verified', async () => {
  const payer = await aPayer()
  const stranger = await aPayer(chain, 1_000_000n)
  await fundToken(dream, 'USDC', stranger.account.address, 1_000_000n)
  // Returns the magic value of ERC-1271 to every call.
  const always = `0x${'7f'}1626ba7e${'0'.repeat(56)}60005260206000f3`
  const method = 'anvil_setCode'
  await askDream(method, [stranger.account.address, always])
  dreamOn()
  const stolen = await verify(payer, {
    sign: { from: stranger.account.address },
    after: ({ payload }) => {
      payload.signature = `0x${'ab'.repeat(80)}`
    },
  })
  expect([stolen.status, stolen.body.reason]).toEqual([402, 'invalid_exact_evm_signature'])
})
