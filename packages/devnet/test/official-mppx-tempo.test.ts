import { decodeMppJson, encodeMppJson, formatChallenge, parseChallenges } from '@purser/protocol'
import { Mppx, tempo } from 'mppx/client'
import { createClient, custom, type Hex, http, MethodNotSupportedRpcError } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { Transaction } from 'viem/tempo'
import { tempoModerato } from 'viem/tempo/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aTempoWallet, fundSponsor, pathUsd } from '../../server/test/tempo-payer.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundFees, fundToken, tokenBalance } from '../src/faucet.ts'
import { rpc } from '../src/rpc.ts'

let chain: DevChain
let plain: World
let sponsoring: World

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  plain = await aWorld({ chains: [chain] })
  sponsoring = await aWorld({ chains: [chain], config: { sponsorTempoFees: true } })
  await fundSponsor(chain, sponsoring.server.settlerAddress)
})
afterAll(async () => {
  await plain?.stop()
  await sponsoring?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'
const price = 10_000n
const hex = z.templateLiteral(['0x', z.string()])

/** The official client with its own account. */
async function anAgent(mode: 'pull' | 'push', funds: 'price' | 'fees') {
  const account = privateKeyToAccount(generatePrivateKey())
  if (funds === 'fees') await fundFees(chain, account.address)
  else await fundToken(chain, 'pathUSD', account.address, price)
  const getClient = () => createClient({ account, chain: tempoModerato, transport: http(chain.rpcUrl) })
  const mppx = Mppx.create({ polyfill: false, methods: [tempo.charge({ account, mode, getClient })] })
  return {
    account,
    pay: (header: string) =>
      mppx.createCredential(new Response(null, { status: 402, headers: { 'www-authenticate': header } })),
  }
}

/** What a browser wallet is requested to sign or send, in the client's JSON-RPC form. */
const WalletRequest = z.tuple([
  z.looseObject({
    to: hex.optional(),
    data: hex.optional(),
    calls: z.array(z.object({ to: hex, data: hex })).optional(),
    feePayer: z.boolean().optional(),
  }),
])

/** The official client in its default mode, whose account is a wallet behind JSON-RPC, as in a browser. */
async function aBrowserAgent() {
  const account = privateKeyToAccount(generatePrivateKey())
  await fundFees(chain, account.address)
  const methods: string[] = []
  const sign = async (params: unknown): Promise<Hex> => {
    const [{ to, data, calls, feePayer }] = WalletRequest.parse(params)
    const transaction = {
      type: 'tempo',
      from: account.address,
      chainId: tempoModerato.id,
      calls: calls ?? [{ to: hex.parse(to), data: hex.parse(data) }],
      nonceKey: 2n ** 256n - 1n,
      nonce: 0,
      validBefore: Math.floor(Date.now() / 1_000) + 25,
      gas: 700_000n,
      maxFeePerGas: 20_000_000_000n,
      maxPriorityFeePerGas: 0n,
      ...(feePayer === true ? { feePayer: true as const } : { feeToken: pathUsd }),
    } as const
    return account.signTransaction(transaction, { serializer: Transaction.serialize })
  }
  const request = async ({ method, params }: { method: string; params?: unknown }) => {
    methods.push(method)
    if (method === 'wallet_sendCalls')
      throw new MethodNotSupportedRpcError(new Error('this wallet does not'), { method })
    if (method === 'eth_signTransaction') return sign(params)
    if (method === 'eth_sendTransaction') return rpc(chain.rpcUrl, 'eth_sendRawTransaction', [await sign(params)])
    return rpc(chain.rpcUrl, method, Array.isArray(params) ? params : [])
  }
  const getClient = () =>
    createClient({ account: account.address, chain: tempoModerato, transport: custom({ request }) })
  const mppx = Mppx.create({ polyfill: false, methods: [tempo.charge({ account: account.address, getClient })] })
  return {
    account,
    methods,
    pay: (header: string) =>
      mppx.createCredential(new Response(null, { status: 402, headers: { 'www-authenticate': header } })),
  }
}

async function aRoute(world: World) {
  const org: Org = await world.organisation()
  const wallet = await aTempoWallet(world, org)
  const requested = { walletId: wallet.id, resource, price: '0.01' }
  return {
    wallet,
    challenge: async () => String((await world.call(org.testKey, 'POST', '/payments/challenge', requested)).body.mpp),
    verify: (credential: string, base = world.base): Promise<Answer> => {
      const body = { protocol: 'mpp', credential, ...requested }
      return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
    },
  }
}

test.each(['pull', 'push'] as const)('the official client pays by %s, once', async (mode) => {
  const { wallet, challenge, verify } = await aRoute(plain)
  const agent = await anAgent(mode, 'fees')
  const credential = await agent.pay(await challenge())
  const response = await verify(credential)
  expect(response.body).toMatchObject({
    valid: true,
    method: 'tempo',
    payer: agent.account.address,
    settlementPending: false,
  })
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect(codeOf(await verify(credential))).toBe('duplicate-payment')
})

test('the official client pays exactly the price of a sponsored challenge', async () => {
  const { wallet, challenge, verify } = await aRoute(sponsoring)
  const agent = await anAgent('pull', 'price')
  const header = await challenge()
  expect(decodeMppJson(parseChallenges(header)[0]?.request ?? '')).toMatchObject({ methodDetails: { feePayer: true } })
  const response = await verify(await agent.pay(header))
  expect([response.status, response.body.settlementPending]).toEqual([200, false])
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect(await tokenBalance(chain, 'pathUSD', agent.account.address)).toBe(0n)
})

test.each([
  ['pushes to a challenge whose fee it pays itself', () => plain, 'eth_sendTransaction'],
  ['signs for a challenge whose fee the service pays', () => sponsoring, 'eth_signTransaction'],
] as const)(
  'the official client of a browser wallet, left to its default mode, %s, and is served',
  async (_, of, method) => {
    const { wallet, challenge, verify } = await aRoute(of())
    const agent = await aBrowserAgent()
    const response = await verify(await agent.pay(await challenge()))
    expect([response.status, response.body.payer, response.body.settlementPending]).toEqual([
      200,
      agent.account.address,
      false,
    ])
    expect(agent.methods).toContain(method)
    expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  },
)

test('a wallet that pushes to a sponsored challenge, whatever modes the challenge lists, is credited and served', async () => {
  const { wallet, challenge, verify } = await aRoute(sponsoring)
  const header = await challenge()
  const [offer] = parseChallenges(header)
  if (offer === undefined) throw new Error('no offer')
  const { supportedModes: _, ...methodDetails } = Object(decodeMppJson(offer.request)?.methodDetails)
  const request = encodeMppJson({ ...decodeMppJson(offer.request), methodDetails })
  const agent = await aBrowserAgent()
  const pushed = await agent.pay(formatChallenge({ ...offer, request }))
  expect(agent.methods).toContain('eth_sendTransaction')
  const credential = swapChallenge(pushed, header)
  const response = await verify(credential)
  expect([response.status, response.body.settlementPending]).toEqual([200, false])
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect(codeOf(await verify(credential))).toBe('duplicate-payment')
})

test('twenty copies of an official credential at two processes at once are one payment', async () => {
  const { wallet, challenge, verify } = await aRoute(plain)
  const other = await plain.another()
  for (const mode of ['pull', 'push'] as const) {
    const before = await tokenBalance(chain, 'pathUSD', wallet.address)
    const agent = await anAgent(mode, 'fees')
    const credential = await agent.pay(await challenge())
    const copies = Array.from({ length: 20 }, (_, index) => verify(credential, index % 2 ? plain.base : other.base))
    expect(countByStatus(await Promise.all(copies))).toEqual({ 200: 1, 409: 19 })
    expect((await tokenBalance(chain, 'pathUSD', wallet.address)) - before).toBe(price)
  }
})

test('what an official client pushed for one challenge pays for no other challenge', async () => {
  const { challenge, verify } = await aRoute(plain)
  const agent = await anAgent('push', 'fees')
  const [first, second] = [await challenge(), await challenge()]
  const paid = await agent.pay(first)
  const stolen = swapChallenge(paid, second)
  const response = await verify(stolen)
  expect([response.status, response.body.reason]).toEqual([402, 'verification-failed'])
  expect((await verify(paid)).status).toBe(200)
  expect(codeOf(await verify(stolen))).toBe('duplicate-payment')
})

/** Returns the payload with the challenge of another header. */
function swapChallenge(credential: string, header: string): string {
  const read: unknown = JSON.parse(Buffer.from(credential.replace(/^Payment /, ''), 'base64url').toString('utf8'))
  if (typeof read !== 'object' || read === null) throw new Error('not a credential')
  const [challenge] = parseChallenges(header)
  return `Payment ${Buffer.from(JSON.stringify({ ...read, challenge })).toString('base64url')}`
}
