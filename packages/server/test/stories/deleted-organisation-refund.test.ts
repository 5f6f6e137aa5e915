import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aBrowser, ownerOf } from '../people.ts'
import { createFakeScreening } from '../screening-double.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org

beforeAll(async () => {
  chain = await startChain({ network: 'base' })
  const screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 500 }, boot: { screening } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const resource = 'https://api.example.com/weather'
const Blockers = z.array(z.object({ kind: z.string(), count: z.number() }))
const live = (method: string, path: string, body?: unknown) => world.call(org.liveKey, method, path, body)

/** Calls again, with a new block each time, until the answer is the expected one. */
async function asBlocksCome<T>(call: () => Promise<T>, isDone: (response: T) => boolean): Promise<T> {
  const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  let response = await call()
  const poll = async () => {
    if (isDone(response)) return true
    await node.mine({ blocks: 1 })
    response = await call()
    return isDone(response)
  }
  await expect.poll(poll, { timeout: 60_000, interval: 200 }).toBe(true)
  return response
}

async function aSettledPayment(walletId: string): Promise<string> {
  const payer = await aPayer(chain)
  const terms = { walletId, resource, price: '0.01' }
  const credential = await payer.credential(await live('POST', '/payments/challenge', terms))
  const { body } = await live('POST', '/payments/verify', { ...terms, protocol: 'x402', credential, method: 'GET' })
  const { paymentId, settlementToken } = body
  await live('POST', '/payments/settle', { paymentId, settlementToken })
  await asBlocksCome(
    () => live('GET', `/payments/${paymentId}`),
    (shown) => shown.body.status === 'settled',
  )
  return String(paymentId)
}

test('a session of a week keeps the organisation until its payment is refunded, and is then no obligation', async () => {
  const masters = '/wallet-infra/master-wallets'
  const { body: wallet } = await live('POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  await fundNative(chain, wallet.address as Address, 10n ** 18n)
  await fundToken(chain, 'USDC', wallet.address as Address, 5_000_000n)
  const paymentId = await aSettledPayment(String(wallet.id))
  const { body: session } = await live('POST', '/sessions', { paymentId, expiresIn: 604_800 })
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const kindsOf = ({ body }: Answer) => Blockers.parse(body.blockers).map(({ kind, count }) => `${count} ${kind}`)
  const remove = async () => kindsOf(await owner.call('DELETE', `/organisations/${org.id}`))
  expect(await remove()).toEqual(['1 wallets', '1 vaults', '1 sessions'])
  const refunded = await asBlocksCome(
    () => live('POST', `/payments/${paymentId}/refund`, {}),
    (response) => codeOf(response) !== 'insufficient-balance',
  )
  expect([refunded.status, codeOf(refunded)]).toEqual([201, ''])
  expect((await live('GET', `/sessions/${session.sessionId}`)).body.isExpired).toBe(true)
  await asBlocksCome(remove, (kinds) => kinds.every((kind) => kind !== '1 refunds'))
  expect(await remove()).toEqual(['1 wallets'])
})
