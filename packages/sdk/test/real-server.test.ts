import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import {
  AuthenticationError,
  ConflictError,
  createPurser,
  LimitError,
  NotFoundError,
  PaymentRefusedError,
  type Purser,
  ValidationError,
} from '../src/index.ts'

let world: World
let org: Org
let purser: Purser
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('enterprise')
  purser = clientFor(org.testKey)
})
afterAll(() => world?.stop())

const resource = 'https://api.example.com/weather?city=Lima'
const route = 'https://api.example.com/weather'
let addresses = 0

function clientFor(apiKey: string): Purser {
  return createPurser({ apiKey, baseUrl: world.base, maxRetries: 0 })
}

function aWallet(client = purser) {
  const address = `0x${(++addresses).toString(16).padStart(40, 'c')}`
  return client.wallets.byo.create({ address, chain: 'base-sepolia', supportedTokens: ['USDC'] })
}

function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error) => error,
  )
}

test('a key is made, works at once, is listed over pages, and works no more when it is revoked', async () => {
  const made = await purser.organisations.apiKeys.create({ name: 'from the SDK', environment: 'test' })
  for (const name of ['second', 'third']) await purser.organisations.apiKeys.createIn(org.id, { name })
  const other = clientFor(made.key)
  expect((await other.organisations.current()).id).toBe(org.id)

  const listed: string[] = []
  for await (const { id } of purser.organisations.apiKeys.list({ limit: 1 })) listed.push(id)
  expect(listed).toContain(made.id)
  expect(new Set(listed).size).toBe(listed.length)
  const whole = await purser.organisations.apiKeys.listIn(org.id, { limit: 500 }).page()
  expect(whole.items.map(({ id }) => id)).toEqual(listed)
  expect(whole.cursor).toBeUndefined()

  await purser.organisations.apiKeys.revoke(made.id)
  expect(await failure(other.organisations.current())).toBeInstanceOf(AuthenticationError)
})

test('a wallet is registered, found, listed and deleted, and a second one of the same address is a conflict', async () => {
  const wallet = await aWallet()
  // Screening may end between two of the requests.
  const shown = { ...wallet, amlStatus: expect.stringMatching(/^(pending|clear)$/) }
  expect(await purser.wallets.byo.get(wallet.id)).toEqual(shown)
  expect(await purser.wallets.byo.list().toArray({ limit: 100 })).toContainEqual(shown)
  const { address, chain, supportedTokens } = wallet
  expect(await failure(purser.wallets.byo.create({ address, chain, supportedTokens }))).toBeInstanceOf(ConflictError)
  expect(await purser.wallets.byo.delete(wallet.id)).toBeUndefined()
  expect(await failure(purser.wallets.byo.get(wallet.id))).toBeInstanceOf(NotFoundError)
})

test('chains are listed with their tokens', async () => {
  const chains = await purser.chains.list({ limit: 2 }).toArray({ limit: 100 })
  expect(chains.find(({ name }) => name === 'base-sepolia')).toMatchObject({ chainId: 84532, isTestnet: true })
  const tokens = await purser.chains.tokens('base-sepolia').toArray({ limit: 10 })
  expect(tokens.find(({ symbol }) => symbol === 'USDC')).toMatchObject({ decimals: 6, eip3009: true })
})

test('a stub payment is challenged, verified, settled, found, logged and summed up', async () => {
  const { id: walletId } = await aWallet()
  const price = '0.25'
  const { x402, x402V1 } = await purser.payments.challenge({ walletId, resource, price })
  expect(x402).toEqual(expect.any(String))
  expect(x402V1).toMatchObject({ x402Version: 1, accepts: [{ network: 'base-sepolia' }] })
  expect(await purser.payments.challenges({ walletId, resource, price, count: 3 })).toHaveLength(3)

  const credential = 'stub_payment_of_the_sdk'
  const request = { protocol: 'x402', credential, price, currency: 'USD', walletId, resource, method: 'GET' } as const
  const { paymentId, settlementToken, settlementPending } = await purser.payments.verify(request)
  expect(settlementPending).toBe(false)
  expect(await purser.payments.settle({ paymentId, settlementToken })).toMatchObject({ status: 'settled' })
  expect(await purser.payments.get(paymentId)).toMatchObject({ id: paymentId, amount: price, walletId, route })
  expect(await failure(purser.payments.verify(request))).toMatchObject({ code: 'duplicate-payment', status: 409 })

  const logs = await purser.payments.logs.list({ walletId, protocol: 'x402' }).toArray({ limit: 10 })
  expect(logs).toMatchObject([{ paymentId, status: 'settled', route, method: 'GET' }])
  expect(await purser.payments.logs.get(logs[0]?.id ?? '')).toEqual(logs[0])
  const summary = [{ route, totalPayments: 1, totalRevenue: price, token: 'USDC' }]
  expect(await purser.payments.logs.summary({ walletId })).toEqual(summary)
  expect(await purser.account.paymentLogs.list({ walletId }).toArray({ limit: 10 })).toMatchObject([{ paymentId }])
  expect(await purser.account.paymentLogs.summary({ walletId })).toEqual(summary)
})

test('a credential that is no payment is refused with its reason', async () => {
  const { id: walletId } = await aWallet(clientFor(org.testKey))
  const header = Buffer.from(JSON.stringify({ x402Version: 2 })).toString('base64')
  const request = { protocol: 'x402', credential: header, price: '0.01', walletId, resource, method: 'GET' } as const
  const error = await failure(purser.payments.verify(request))
  expect(error).toBeInstanceOf(PaymentRefusedError)
  expect(error).toMatchObject({ reason: 'invalid_payload', requestId: expect.stringMatching(/^req_/) })
})

test('a faulty request is a ValidationError that names every fault by its path', async () => {
  const body = { address: '0x12', chain: 'base-sepolia', supportedTokens: [], name: '' } as const
  const error = await failure(purser.wallets.byo.create(body))
  expect(error).toBeInstanceOf(ValidationError)
  expect(error).toMatchObject({
    errors: expect.arrayContaining([
      { path: '/address', message: expect.any(String) },
      { path: '/supportedTokens', message: expect.any(String) },
    ]),
  })
})

test('a second wallet on the hobby plan is a LimitError with the limit and the way out', async () => {
  const hobbyist = clientFor((await world.organisation('hobby')).testKey)
  await aWallet(hobbyist)
  const error = await failure(aWallet(hobbyist))
  expect(error).toBeInstanceOf(LimitError)
  expect(error).toMatchObject({ limit: 1, current: 1, upgradeUrl: expect.stringMatching(/^http/) })
  const { plan, limits } = await hobbyist.billing.plan()
  expect([plan, limits.byoWallets]).toEqual(['hobby', 1])
  expect((await hobbyist.billing.usage()).byoWallets).toMatchObject({ used: 1, limit: 1 })
})

test('the account knows its organisations and its use, and what was done is in the audit log', async () => {
  const { organisations } = await purser.account.get()
  const active = { suspendedAt: null, suspensionReason: null }
  const own = { id: org.id, name: expect.any(String), type: 'team', role: 'owner' }
  expect(organisations).toContainEqual({ ...own, ...active })
  expect((await purser.account.usage()).plan).toBe('enterprise')
  const { name } = await purser.organisations.update({ name: 'Renamed by the SDK' })
  expect((await purser.organisations.current()).name).toBe(name)
  expect(await failure(purser.organisations.delete(org.id))).toMatchObject({ status: 403, code: 'person-required' })
  // The screening of a wallet that an earlier test registered may be recorded at the same time.
  const byKey = (await purser.organisations.auditLog().toArray({ limit: 20 })).filter(
    (record) => record.actor.kind === 'api-key',
  )
  expect(byKey[0]).toMatchObject({ action: 'organisations.update' })
})

test('a member is added by e-mail, given another role, and removed', async () => {
  const { members } = purser.organisations
  const { accountId } = await members.add({ email: 'new.member@example.com', role: 'viewer' })
  expect(await members.update(accountId, { role: 'member' })).toMatchObject({ accountId, role: 'member' })
  await members.remove(accountId)
  const left = await members.list().toArray({ limit: 10 })
  expect(left.map((member) => member.accountId)).not.toContain(accountId)
})
