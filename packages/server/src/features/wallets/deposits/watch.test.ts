import { getAddress, toHex } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../../../test/world.ts'
import { sql } from '../../../platform/db/db.ts'
import { newId } from '../../../platform/ids.ts'
import { unwatchAddress, watchAddresses } from './watch.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const Row = z.object({
  network: z.string(),
  environment: z.string(),
  address: z.string(),
  tokens: z.array(z.string()),
  isEnded: z.boolean(),
})

function watchesOf(walletId: string) {
  return world.database.db.many(
    Row,
    sql`select network, environment, encode(address, 'hex') as address, tokens, until is not null as is_ended from watched_addresses where wallet_id = ${walletId}`,
  )
}

test('a wallet is watched from the commit that registers it until the one that deletes it', async () => {
  const org = await world.organisation()
  const wallet = await world.wallet(org)
  const watched = {
    network: 'base-sepolia',
    environment: 'test',
    address: wallet.address.slice(2).toLowerCase(),
    tokens: ['USDC'],
  }
  expect(await watchesOf(wallet.id)).toEqual([{ ...watched, isEnded: false }])
  await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${wallet.id}`)
  expect(await watchesOf(wallet.id)).toEqual([{ ...watched, isEnded: true }])
})

test('however often an address is registered and deleted, a few of its ended watches are kept, and the oldest begins where the first did', async () => {
  const org = await world.organisation()
  const first = await world.wallet(org)
  const address = first.address
  const began = await world.database.db.one(
    z.object({ since: z.date() }),
    sql`select since from watched_addresses where wallet_id = ${first.id}`,
  )
  const other = await world.wallet(org)
  await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${other.id}`)
  let last: string = first.id
  for (let turn = 0; turn < 12; turn++) {
    await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${last}`)
    const wallet = { address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
    const made = await world.call(org.testKey, 'POST', '/wallet-infra/byo-wallets', wallet)
    expect(made.status).toBe(201)
    last = String(made.body.id)
  }
  const rows = await world.database.db.many(
    z.object({ walletId: z.string(), since: z.date(), isEnded: z.boolean() }),
    sql`select wallet_id, since, until is not null as is_ended from watched_addresses
      where address = ${Buffer.from(address.slice(2), 'hex')} order by wallet_id`,
  )
  expect(rows.filter(({ isEnded }) => !isEnded).map(({ walletId }) => walletId)).toEqual([last])
  expect(rows.filter(({ isEnded }) => isEnded)).toHaveLength(8)
  expect(Math.min(...rows.map(({ since }) => since.getTime()))).toBe(began.since.getTime())
  expect(await watchesOf(other.id)).toHaveLength(1)
})

test('a refused registration leaves nothing watched', async () => {
  const org = await world.organisation('hobby')
  await world.wallet(org)
  await expect(world.wallet(org)).rejects.toThrow('byo-wallet-limit-reached')
  const rows = await world.database.db.many(
    z.object({ walletId: z.string() }),
    sql`select wallet_id from watched_addresses where organisation_id = ${org.id}`,
  )
  expect(rows).toHaveLength(1)
})

test('a thousand addresses are watched in one statement, and repeating the call changes nothing', async () => {
  const { deps } = world.server
  const org = await world.organisation()
  const ctx = { ...deps, tenant: { organisationId: org.id, environment: 'live' as const } }
  const watches = Array.from({ length: 1_000 }, (_, n) => ({
    walletId: newId('cad', deps),
    address: getAddress(toHex(n + 1, { size: 20 })),
    chain: 'base' as const,
    network: 'base',
    supportedTokens: n % 2 === 0 ? ['USDC'] : ['USDC', 'USDT'],
  }))
  for (let round = 0; round < 2; round++) await deps.db.tx((tx) => watchAddresses(ctx, tx, watches))
  const count = () =>
    deps.db.one(
      z.object({ all: z.bigint(), open: z.bigint(), both: z.bigint() }),
      sql`select count(*) as all, count(*) filter (where until is null) as open, count(*) filter (where cardinality(tokens) = 2) as both
        from watched_addresses where organisation_id = ${org.id}`,
    )
  expect(await count()).toEqual({ all: 1_000n, open: 1_000n, both: 500n })
  await deps.db.tx((tx) => unwatchAddress(ctx, tx, { walletId: watches[0]?.walletId ?? '', head: undefined }))
  expect(await count()).toEqual({ all: 1_000n, open: 999n, both: 500n })
  await expect(deps.db.tx((tx) => watchAddresses(ctx, tx, [...watches, ...watches.slice(0, 1)]))).rejects.toThrow(
    'at most 1000',
  )
})
