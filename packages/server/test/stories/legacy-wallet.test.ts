import { type DevChain, fundFees, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let ethereum: DevChain
let tempo: DevChain
let world: World
/** A second process of the same deployment. */
let second: string

beforeAll(async () => {
  ;[ethereum, tempo] = await Promise.all([
    startChain({ network: 'eth-sepolia' }),
    startChain({ network: 'tempo-moderato' }),
  ])
  world = await aWorld({ chains: [ethereum, tempo], boot: { depositPollMsMax: 50 } })
  second = (await world.another()).base
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([ethereum?.stop(), tempo?.stop()])
})

const masters = '/wallet-infra/master-wallets'

interface Legacy {
  readonly org: Org
  readonly id: string
  readonly address: Address
}

/** The legacy wallet of a new organisation, with a coin for gas. */
async function aLegacy(): Promise<Legacy> {
  const org = await world.organisation()
  const { body } = await world.call(org.testKey, 'POST', '/wallets', { coin: 'USDC' })
  const address = body.address as Address
  await fundFees(ethereum, address)
  return { org, id: String(body.id), address }
}

function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

const get = ({ org }: Legacy, path: string) => world.call(org.testKey, 'GET', `/wallets${path}`)

const withdraw = ({ org }: Legacy, changes: object = {}, headers: Record<string, string> = {}) =>
  world.call(
    org.testKey,
    'POST',
    '/wallets/withdraw',
    { to: stranger(), amount: '2', coin: 'USDC', ...changes },
    headers,
  )

async function eventsOf(transferId: unknown): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload ->> 'transactionId' = ${String(transferId)} order by id`,
  )
  return rows.map(({ type }) => type)
}

test('the wallet is created with 201, and returned with 200 for every coin afterwards', async () => {
  const org = await world.organisation()
  const post = (body: object) => world.call(org.testKey, 'POST', '/wallets', body)
  const made = await post({})
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^mwt_/),
    address: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
    coin: 'USDC_E',
    chain: 'tempo',
    createdAt: expect.any(String),
  })
  const again = await post({ coin: 'USDC_E' })
  expect([again.status, again.body]).toEqual([200, made.body])
  const other = await post({ coin: 'USDC' })
  expect([other.status, other.body]).toEqual([200, { ...made.body, coin: 'USDC', chain: 'ethereum' }])
  expect((await world.call(org.testKey, 'GET', '/wallets/me')).body).toEqual(made.body)
  const live = await world.call(org.liveKey, 'POST', '/wallets', { coin: 'USDT' })
  expect([live.status, live.body.coin, live.body.chain]).toEqual([201, 'USDT', 'ethereum'])
  expect([live.body.id, live.body.address]).not.toContain(made.body.id)
})

test('twenty requests at once at two processes create one wallet, use one account, and one gets 201', async () => {
  const org = await world.organisation()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => {
      const body = { coin: n % 3 === 0 ? 'USDC' : 'USDC_E' }
      return request(n % 2 === 0 ? world.base : second, { key: org.testKey, method: 'POST', path: '/wallets', body })
    }),
  )
  expect(countByStatus(answers)).toEqual({ 200: 19, 201: 1 })
  expect(new Set(answers.map(({ body }) => `${body.id} ${body.address}`)).size).toBe(1)
  await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const accounts = await world.database.db.many(
    z.object({ account: z.number() }),
    sql`select account from master_wallets where organisation_id = ${org.id} order by account`,
  )
  expect(accounts, 'none skipped, none given twice').toEqual([{ account: 0 }, { account: 1 }])
})

test('the same Idempotency-Key makes it once and answers 201 both times', async () => {
  const org = await world.organisation()
  const post = () => world.call(org.testKey, 'POST', '/wallets', {}, { 'idempotency-key': 'mine' })
  const [first, again] = [await post(), await post()]
  expect([first.status, again.status, again.body]).toEqual([201, 201, first.body])
})

test('it counts in no quota, is not among the managed wallets, and a recount changes nothing', async () => {
  const org = await world.organisation('hobby')
  const { body } = await world.call(org.testKey, 'POST', '/wallets', {})
  const managed = async () =>
    z
      .object({ managedWallets: z.object({ used: z.number(), limit: z.number() }) })
      .parse((await world.call(org.testKey, 'GET', '/billing/usage')).body).managedWallets
  const { used, limit } = await managed()
  expect(used).toBe(0)
  for (let made = 0; made < limit; made++) {
    const wallet = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
    expect(wallet.status, 'the whole quota is left').toBe(201)
  }
  expect((await world.call(org.testKey, 'POST', '/billing/rebuild-cache')).status).toBeLessThan(300)
  expect(await managed()).toMatchObject({ used: limit, limit })
  expect((await world.call(org.testKey, 'GET', masters)).list.map(({ id }) => id)).not.toContain(body.id)
})

test.each([
  ['GET', '', undefined],
  ['PATCH', '', { name: 'Mine' }],
  ['GET', '/balances', undefined],
  ['GET', '/transactions', undefined],
  ['POST', '/child-addresses', {}],
  ['GET', '/child-addresses', undefined],
  ['POST', '/sweep', { token: 'USDC' }],
  ['GET', '/sweeps', undefined],
])('%s of the managed wallets%s does not return it', async (method, path, body) => {
  const { org, id } = await aLegacy()
  const response = await world.call(org.testKey, method, `${masters}/${id}${path}`, body)
  expect([response.status, codeOf(response)]).toEqual([404, 'wallet-not-found'])
})

test('before it is created it cannot be read or withdrawn from; and no other tenant sees it', async () => {
  const theirs = await aLegacy()
  const org = await world.organisation()
  const mine: Legacy = { ...theirs, org }
  const liveOnes: Legacy = { ...theirs, org: { ...theirs.org, testKey: theirs.org.liveKey } }
  for (const nobody of [mine, liveOnes]) {
    for (const path of ['/me', '/balance', '/history']) {
      const response = await get(nobody, path)
      expect([response.status, codeOf(response)]).toEqual([404, 'wallet-not-found'])
    }
    const refused = await withdraw(nobody)
    expect([refused.status, codeOf(refused)]).toEqual([404, 'wallet-not-found'])
  }
})

test('a coin that the environment does not have is refused by name, before a wallet is created', async () => {
  const org = await world.organisation()
  const refused = await world.call(org.testKey, 'POST', '/wallets', { coin: 'USDT' })
  expect([refused.status, codeOf(refused), refused.body.available]).toEqual([
    422,
    'coin-not-available',
    ['USDC_E', 'USDC'],
  ])
  expect((await world.call(org.testKey, 'GET', '/wallets/me')).status).toBe(404)
  expect((await world.call(org.testKey, 'POST', '/wallets', { coin: 'DAI' })).status).toBe(422)
})

test('deposits of each coin are in its balance, in its history, and published', async () => {
  const legacy = await aLegacy()
  await fundToken(ethereum, 'USDC', legacy.address, 3_000_000n)
  await fundToken(tempo, 'pathUSD', legacy.address, 4_500_000n)
  const rows = async () =>
    (await get(legacy, '/history')).list
      .filter(({ status }) => status === 'confirmed')
      .map(({ walletId, chain, tokenSymbol, amount, kind, direction }) =>
        [walletId, chain, tokenSymbol, amount, kind, direction].join(' '),
      )
      .sort()
  await expect
    .poll(rows, { timeout: 90_000 })
    .toEqual([`${legacy.id} ethereum USDC 3 transfer in`, `${legacy.id} tempo pathUSD 4.5 transfer in`])
  const usdc = {
    coin: 'USDC',
    chain: 'ethereum',
    tokenSymbol: 'USDC',
    formattedBalance: '3',
    rawBalance: '3000000',
  }
  const usdcE = {
    coin: 'USDC_E',
    chain: 'tempo',
    tokenSymbol: 'pathUSD',
    formattedBalance: '4.5',
    rawBalance: '4500000',
  }
  const { id, address } = legacy
  expect((await get(legacy, '/balance')).body).toEqual({ id, address, balances: [usdcE, usdc] })
  expect((await get(legacy, '/balance?coin=USDC')).body).toEqual({ id, address, balances: [usdc] })
  const events = (await world.call(legacy.org.testKey, 'GET', '/events?type=deposit.success')).list
  expect(events.map(({ payload }) => Object(payload).walletId)).toEqual([id, id])
})

test('a withdrawal is queued, moves the money once however often it is repeated, and publishes its end once', async () => {
  const legacy = await aLegacy()
  await fundToken(ethereum, 'USDC', legacy.address, 10_000_000n)
  const to = stranger()
  const body = { to, amount: '2.5', coin: 'USDC' }
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      request(n % 2 === 0 ? world.base : second, {
        key: legacy.org.testKey,
        method: 'POST',
        path: '/wallets/withdraw',
        body,
        headers: { 'idempotency-key': 'out' },
      }),
    ),
  )
  expect(Object.keys(countByStatus(answers)).every((status) => ['202', '409'].includes(status))).toBe(true)
  const queued = answers.find(({ status }) => status === 202)
  expect(queued?.body).toEqual({ id: expect.stringMatching(/^wtx_/), status: 'queued' })
  const again = await withdraw(legacy, body, { 'idempotency-key': 'out' })
  expect([again.status, again.body]).toEqual([202, queued?.body])
  await expect.poll(() => eventsOf(again.body.id), { timeout: 60_000 }).toEqual(['transfer.completed'])
  expect(await tokenBalance(ethereum, 'USDC', to)).toBe(2_500_000n)
  expect(await tokenBalance(ethereum, 'USDC', legacy.address)).toBe(7_500_000n)
  const transfer = await world.call(legacy.org.testKey, 'GET', `/wallet-infra/transfers/${again.body.id}`)
  expect(transfer.body).toMatchObject({ fromWalletId: legacy.id, toAddress: to, status: 'confirmed', amount: '2.5' })
  const all = await world.call(legacy.org.testKey, 'GET', '/wallet-infra/transfers')
  expect(all.list).toHaveLength(1)
})

test('on Tempo the coin pays its own gas, and is withdrawn by default', async () => {
  const legacy = await aLegacy()
  await fundFees(tempo, legacy.address)
  const balance = await tokenBalance(tempo, 'pathUSD', legacy.address)
  const to = stranger()
  const queued = await withdraw(legacy, { to, coin: undefined, amount: '5' })
  expect(queued.status).toBe(202)
  await expect.poll(() => eventsOf(queued.body.id), { timeout: 60_000 }).toEqual(['transfer.completed'])
  expect(await tokenBalance(tempo, 'pathUSD', to)).toBe(5_000_000n)
  expect(await tokenBalance(tempo, 'pathUSD', legacy.address)).toBeLessThan(balance - 5_000_000n + 1n)
})

test('more than the balance, and an invalid withdrawal, are refused and not stored', async () => {
  const legacy = await aLegacy()
  await fundToken(ethereum, 'USDC', legacy.address, 1_999_999n)
  const usdc = '0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238'
  const reported = async (changes: object) => {
    const response: Answer = await withdraw(legacy, changes)
    const errors = z
      .array(z.object({ path: z.string() }))
      .optional()
      .parse(response.body.errors)
    return [response.status, codeOf(response), ...(errors ?? []).map(({ path }) => path)]
  }
  expect(await reported({})).toEqual([422, 'insufficient-balance'])
  expect(await reported({ coin: 'USDT' })).toEqual([422, 'coin-not-available'])
  expect(await reported({ amount: '0' })).toEqual([422, 'validation-error', '/amount'])
  expect(await reported({ amount: '1.0000001' })).toEqual([422, 'validation-error', '/amount'])
  expect(await reported({ to: usdc })).toEqual([422, 'validation-error', '/to'])
  expect(await reported({ to: `0x${'0'.repeat(40)}`, amount: 7 })).toEqual([422, 'validation-error', '/to', '/amount'])
  expect((await world.call(legacy.org.testKey, 'GET', '/wallet-infra/transfers')).list).toEqual([])
})

test('its spend policy is read and set by its id, applies to withdrawals as legacyWithdraw, and records what it refused', async () => {
  const legacy = await aLegacy()
  await fundToken(ethereum, 'USDC', legacy.address, 50_000_000n)
  const [friend, path] = [stranger(), `${masters}/${legacy.id}/policy`]
  expect((await withdraw(legacy, { to: friend, amount: '1' })).status, 'without a policy nothing is limited').toBe(202)
  const call = (method: string, body?: object) => world.call(legacy.org.testKey, method, path, body)
  expect((await call('GET')).body).toMatchObject({ masterWalletId: legacy.id, policy: null })
  const policy = { operations: { legacyWithdraw: { recipients: [friend] } }, tokens: { USDC: { perDay: '5' } } }
  expect((await call('PUT', policy)).status).toBe(200)
  const rule = async (changes: object) => {
    const { status, body } = await withdraw(legacy, changes)
    return [status, body.rule]
  }
  expect(await rule({ amount: '1' })).toEqual([403, 'recipient'])
  expect(await rule({ to: friend, amount: '4' })).toEqual([202, undefined])
  expect(await rule({ to: friend, amount: '0.000001' })).toEqual([403, 'perDay'])
  const log = await world.call(legacy.org.testKey, 'GET', '/organisations/current/audit-log')
  expect(
    log.list.filter(({ action, target }) => action === 'wallets.policy.deny' && target === legacy.id),
  ).toHaveLength(2)
  const kept = await world.database.db.many(
    z.object({ operation: z.string() }),
    sql`select operation from policy_reservations where master_wallet_id = ${legacy.id} and operation <> 'gas'`,
  )
  expect(kept).toEqual([{ operation: 'legacyWithdraw' }, { operation: 'legacyWithdraw' }])
})
