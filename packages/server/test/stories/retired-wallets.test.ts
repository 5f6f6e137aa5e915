import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import type { Address } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { lockNetwork } from '../../src/features/wallets/deposits/cursor-store.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aPayer, aWorld, codeOf, countByStatus, type Org, type World } from '../world.ts'

let chain: DevChain
let ethereum: DevChain
let world: World

beforeAll(async () => {
  ;[chain, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  world = await aWorld({ chains: [chain, ethereum], boot: { depositPollMsMax: 200 } })
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([chain?.stop(), ethereum?.stop()])
})

const masters = '/wallet-infra/master-wallets'

interface Managed {
  readonly id: string
  readonly path: string
  readonly address: Address
}

async function aMaster(org: Org, changes: object = {}): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, {
    ...{ chain: 'base', supportedTokens: ['USDC'] },
    ...changes,
  })
  return { id: String(body.id), path: `${masters}/${body.id}`, address: body.address as Address }
}

async function aChild(org: Org, { path }: Managed): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', `${path}/child-addresses`, {})
  return { id: String(body.id), path: `${path}/child-addresses/${body.id}`, address: body.address as Address }
}

const retire = (org: Org, { path }: Managed): Promise<Answer> => world.call(org.testKey, 'DELETE', path)
const restore = (org: Org, { path }: Managed): Promise<Answer> => world.call(org.testKey, 'POST', `${path}/restore`)
const usedOf = async (org: Org) => (await world.call(org.testKey, 'GET', '/billing/usage')).body.managedWallets
const pathOf = async (org: Org, { path }: Managed) =>
  (await world.call(org.testKey, 'POST', `${path}/child-addresses`, {})).body.derivationPath

function transfer(org: Org, fromWalletId: string, toAddress: string, amount = '1'): Promise<Answer> {
  const body = { fromWalletId, toAddress, amount, fromToken: 'USDC', toChain: 'base', toToken: 'USDC' }
  return world.call(org.testKey, 'POST', '/wallet-infra/transfer', body)
}

test('a retired wallet does not count in the plan, and its account is never assigned again', async () => {
  const org = await world.organisation('hobby')
  const first = await aMaster(org)
  expect((await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })).status).toBe(
    429,
  )
  expect((await retire(org, first)).status).toBe(204)
  expect(await usedOf(org)).toMatchObject({ used: 0, limit: 1 })
  const shown = await world.call(org.testKey, 'GET', first.path)
  expect(shown.body).toMatchObject({ provisionStatus: 'retired', retiredAt: expect.stringMatching(/Z$/) })
  const second = await aMaster(org)
  expect(await pathOf(org, second)).toBe("m/44'/60'/1'/0/1")
  expect(second.address).not.toBe(first.address)
  expect((await retire(org, first)).status).toBe(204)
  expect(await usedOf(org)).toMatchObject({ used: 1, limit: 1 })
  await world.call(org.testKey, 'POST', '/billing/rebuild-cache')
  expect(await usedOf(org)).toMatchObject({ used: 1, limit: 1 })
  const full = await restore(org, first)
  expect([full.status, codeOf(full)]).toEqual([429, 'managed-wallet-limit-reached'])
  expect((await retire(org, second)).status).toBe(204)
  const restored = await restore(org, first)
  expect([restored.status, restored.body.provisionStatus, restored.body.retiredAt]).toEqual([200, 'active', null])
  expect((await restore(org, first)).status).toBe(200)
  expect(await usedOf(org)).toMatchObject({ used: 1, limit: 1 })
})

test('a wallet is retired once and restored once, in however many concurrent requests', async () => {
  const org = await world.organisation('pro')
  const master = await aMaster(org)
  const retired = await Promise.all(Array.from({ length: 6 }, () => retire(org, master)))
  expect(countByStatus(retired)).toEqual({ 204: 6 })
  expect(await usedOf(org)).toMatchObject({ used: 0, limit: 5 })
  const restored = await Promise.all(Array.from({ length: 6 }, () => restore(org, master)))
  expect(countByStatus(restored)).toEqual({ 200: 6 })
  expect(await usedOf(org)).toMatchObject({ used: 1, limit: 5 })
})

test('a wallet with money is not retired: coin, one unit of a token, or a child’s balance', async () => {
  const org = await world.organisation()
  const [withCoin, withToken, withChild] = [await aMaster(org), await aMaster(org), await aMaster(org)]
  const child = await aChild(org, withChild)
  await aChild(org, withChild)
  await fundNative(chain, withCoin.address, 10n ** 16n)
  await fundToken(chain, 'USDC', withToken.address, 1n)
  await fundToken(chain, 'USDC', child.address, 2_500_000n)
  const transactions = async () => (await world.call(org.testKey, 'GET', `${child.path}/transactions`)).list.length
  await expect.poll(transactions, { timeout: 60_000 }).toBe(1)
  for (const [wallet, holding] of [
    [withCoin, { walletId: withCoin.id, tokenSymbol: 'ETH', formattedBalance: '0.01' }],
    [withToken, { walletId: withToken.id, tokenSymbol: 'USDC', formattedBalance: '0.000001' }],
    [withChild, { walletId: child.id, tokenSymbol: 'USDC', formattedBalance: '2.5' }],
  ] as const) {
    const refused = await retire(org, wallet)
    expect([refused.status, codeOf(refused)]).toEqual([409, 'wallet-not-empty'])
    expect(refused.body.holdings).toEqual([expect.objectContaining(holding)])
    expect((await world.call(org.testKey, 'GET', wallet.path)).body.provisionStatus).toBe('active')
  }
  const dusty = await aMaster(org)
  await fundNative(chain, dusty.address, 1_000n)
  expect((await retire(org, dusty)).status).toBe(204)
})

test('a wallet with money or an open movement on another network than its own is not retired', async () => {
  const org = await world.organisation()
  const [withCoin, withChild, sending] = [await aMaster(org), await aMaster(org), await aMaster(org)]
  const child = await aChild(org, withChild)
  await fundNative(ethereum, withCoin.address, 10n ** 17n)
  await fundToken(ethereum, 'USDC', child.address, 2_500_000n)
  const transactions = async () => (await world.call(org.testKey, 'GET', `${child.path}/transactions`)).list.length
  await expect.poll(transactions, { timeout: 60_000 }).toBe(1)
  for (const [wallet, holding] of [
    [withCoin, { walletId: withCoin.id, chain: 'eth-sepolia', tokenSymbol: 'ETH', formattedBalance: '0.1' }],
    [withChild, { walletId: child.id, chain: 'eth-sepolia', tokenSymbol: 'USDC', formattedBalance: '2.5' }],
  ] as const) {
    const refused = await retire(org, wallet)
    expect([refused.status, codeOf(refused)]).toEqual([409, 'wallet-not-empty'])
    expect(refused.body.holdings).toEqual([expect.objectContaining(holding)])
  }
  await world.database.db.run(sql`
    insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount)
    select organisation_id, environment, 'eth-sepolia', address, 'USDC', 'sweep', 'swp_elsewhere', 0, 5 from master_wallets where id = ${sending.id}`)
  const refused = await retire(org, sending)
  expect([refused.status, codeOf(refused), refused.body.holdings]).toEqual([409, 'wallet-not-empty', []])
})

test('a wallet is not retired while the first deposit of a child is in a block and not booked', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const [child] = [await aChild(org, master), await aChild(org, master)]
  await world.database.db.tx(async (tx) => {
    await lockNetwork(tx, 'base-sepolia')
    await fundToken(chain, 'USDC', child.address, 7n)
    const early = await retire(org, master)
    expect([early.status, codeOf(early)]).toEqual([503, 'chain-unavailable'])
  })
  const refused = await retire(org, master)
  expect([refused.status, codeOf(refused)]).toEqual([409, 'wallet-not-empty'])
  expect(refused.body.holdings).toEqual([expect.objectContaining({ walletId: child.id, formattedBalance: '0.000007' })])
})

test('a wallet is not retired while money of a child is reserved, though all balances are zero', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const child = await aChild(org, master)
  const { db } = world.database
  await db.run(sql`
    insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount)
    select organisation_id, environment, 'base-sepolia', address, 'USDC', 'sweep', 'swp_open', 0, 5 from child_addresses where id = ${child.id}`)
  const refused = await retire(org, master)
  expect([refused.status, codeOf(refused), refused.body.holdings]).toEqual([409, 'wallet-not-empty', []])
  await db.run(sql`update reservations set ended_at = now() where subject_id = 'swp_open'`)
  expect((await retire(org, master)).status).toBe(204)
})

test('a retired wallet accepts no payment, sends nothing and derives nothing, reports deposits, and moves them once restored', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  const child = await aChild(org, master)
  expect((await retire(org, master)).status).toBe(204)
  const resource = 'https://api.example.com/weather'
  for (const walletId of [master.id, child.id]) {
    const order = { walletId, resource, price: '0.01' }
    const challenged = await world.call(org.testKey, 'POST', '/payments/challenge', order)
    expect([challenged.status, codeOf(challenged)]).toEqual([422, 'wallet-retired'])
    const sent = await transfer(org, walletId, (await aPayer(chain)).account.address)
    expect([sent.status, codeOf(sent)]).toEqual([422, 'wallet-retired'])
  }
  const swept = await world.call(org.testKey, 'POST', `${master.path}/sweep`, { token: 'USDC' })
  expect([swept.status, codeOf(swept)]).toEqual([409, 'wallet-retired'])
  const derived = await world.call(org.testKey, 'POST', `${master.path}/child-addresses`, {})
  expect([derived.status, codeOf(derived)]).toEqual([409, 'wallet-retired'])

  await fundToken(chain, 'USDC', child.address, 3_000_000n)
  const reported = async () =>
    (await world.call(org.testKey, 'GET', '/events')).list
      .filter(({ type }) => type === 'deposit.success')
      .map(({ payload }) => [Object(payload).walletId, Object(payload).amount])
  await expect.poll(reported, { timeout: 60_000 }).toEqual([[child.id, '3']])
  expect(codeOf(await retire(org, master))).toBe('')
  await restore(org, master)
  expect(codeOf(await retire(org, master))).toBe('wallet-not-empty')
  await expect.poll(async () => (await transfer(org, child.id, master.address)).status, { timeout: 60_000 }).toBe(201)
})

test('a sweep that is requested while its wallet is being retired is refused, and nothing of it is stored', async () => {
  const org = await world.organisation()
  const master = await aMaster(org)
  await aChild(org, master)
  const { db } = world.database
  const waiting = sql`select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into sweeps%'`
  const { requested } = await db.tx(async (tx) => {
    await tx.run(sql`select from master_wallets where id = ${master.id} for update`)
    const requested = world.call(org.testKey, 'POST', `${master.path}/sweep`, { token: 'USDC' })
    await expect.poll(() => db.many(z.object({}), waiting), { timeout: 10_000, interval: 20 }).toHaveLength(1)
    await tx.run(sql`update master_wallets set retired_at = now() where id = ${master.id}`)
    return { requested }
  })
  const swept = await requested
  expect([swept.status, codeOf(swept)]).toEqual([409, 'wallet-retired'])
  expect((await world.call(org.testKey, 'GET', `${master.path}/sweeps`)).list).toEqual([])
})

test('another tenant’s wallet can be neither retired nor restored', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const master = await aMaster(org)
  for (const [owner, key] of [
    [other, other.testKey],
    [org, org.liveKey],
  ] as const)
    for (const [method, path] of [
      ['DELETE', master.path],
      ['POST', `${master.path}/restore`],
    ] as const) {
      const response = await world.call(key, method, path)
      expect([owner.id.length > 0, response.status, codeOf(response)]).toEqual([true, 404, 'wallet-not-found'])
    }
  expect((await world.call(org.testKey, 'GET', master.path)).body.provisionStatus).toBe('active')
})

test.each([
  ['an unlisted token', true, 422],
  ['a contract account', false, 201],
])('%s is registered as a wallet only if it can spend money', async (_, isToken, status) => {
  const org = await world.organisation()
  const address = `0x${isToken ? 'a1' : 'a2'}${'5e'.repeat(19)}`
  await placeContract(address as Address, isToken)
  const body = { address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
  const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', body, { 'idempotency-key': 'one' })
  expect(made.status).toBe(status)
  const again = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', body, { 'idempotency-key': 'one' })
  expect([again.status, again.body]).toEqual([made.status, { ...made.body, ...(status === 422 && again.body) }])
})

/**
 * Places the code of the chain's own USDC at another address, or code that refuses every call, as an account without a
 * token's functions does.
 */
async function placeContract(address: Address, isToken: boolean): Promise<void> {
  const rpc = async (method: string, params: readonly unknown[]): Promise<unknown> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(chain.rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    return Object(await response.json()).result
  }
  const code = isToken ? await rpc('eth_getCode', [chain.tokens.USDC, 'latest']) : '0x60006000fd'
  await rpc('anvil_setCode', [address, code])
}
