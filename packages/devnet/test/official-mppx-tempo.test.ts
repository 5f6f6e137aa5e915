import { decodeMppJson, parseChallenges } from '@purser/protocol'
import { Mppx, tempo } from 'mppx/client'
import { createClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/tempo/chains'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aTempoWallet, fundSponsor } from '../../server/test/tempo-payer.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundFees, fundToken, tokenBalance } from '../src/faucet.ts'

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

/** The official client of an account of its own. */
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

async function aRoute(world: World) {
  const org: Org = await world.organisation()
  const wallet = await aTempoWallet(world, org)
  const asked = { walletId: wallet.id, resource, price: '0.01' }
  return {
    wallet,
    challenge: async () => String((await world.call(org.testKey, 'POST', '/payments/challenge', asked)).body.mpp),
    verify: (credential: string, base = world.base): Promise<Answer> => {
      const body = { protocol: 'mpp', credential, ...asked }
      return request(base, { key: org.testKey, method: 'POST', path: '/payments/verify', body })
    },
  }
}

test.each(['pull', 'push'] as const)('the official client pays by %s, once', async (mode) => {
  const { wallet, challenge, verify } = await aRoute(plain)
  const agent = await anAgent(mode, 'fees')
  const credential = await agent.pay(await challenge())
  const answer = await verify(credential)
  expect(answer.body).toMatchObject({
    valid: true,
    method: 'tempo',
    payer: agent.account.address,
    settlementPending: false,
  })
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect(codeOf(await verify(credential))).toBe('duplicate-payment')
})

test('the official client pays a sponsored challenge with the price and nothing more', async () => {
  const { wallet, challenge, verify } = await aRoute(sponsoring)
  const agent = await anAgent('pull', 'price')
  const header = await challenge()
  expect(decodeMppJson(parseChallenges(header)[0]?.request ?? '')).toMatchObject({ methodDetails: { feePayer: true } })
  const answer = await verify(await agent.pay(header))
  expect([answer.status, answer.body.settlementPending]).toEqual([200, false])
  expect(await tokenBalance(chain, 'pathUSD', wallet.address)).toBe(price)
  expect(await tokenBalance(chain, 'pathUSD', agent.account.address)).toBe(0n)
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

test('what an official client pushed for one challenge buys nothing with another', async () => {
  const { challenge, verify } = await aRoute(plain)
  const agent = await anAgent('push', 'fees')
  const [first, second] = [await challenge(), await challenge()]
  const paid = await agent.pay(first)
  const stolen = swapChallenge(paid, second)
  const answer = await verify(stolen)
  expect([answer.status, answer.body.reason]).toEqual([402, 'verification-failed'])
  expect((await verify(paid)).status).toBe(200)
  expect(codeOf(await verify(stolen))).toBe('duplicate-payment')
})

/** The same payload under the challenge of another header. */
function swapChallenge(credential: string, header: string): string {
  const read: unknown = JSON.parse(Buffer.from(credential.replace(/^Payment /, ''), 'base64url').toString('utf8'))
  if (typeof read !== 'object' || read === null) throw new Error('not a credential')
  const [challenge] = parseChallenges(header)
  return `Payment ${Buffer.from(JSON.stringify({ ...read, challenge })).toString('base64url')}`
}
