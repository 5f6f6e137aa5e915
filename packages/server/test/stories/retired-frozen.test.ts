import { type DevChain, fundToken, startChain } from '@purser/devnet'
import { type Address, zeroAddress } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { screeningRecurring } from '../../src/features/wallets/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { aWorld, codeOf, type Org, type World } from '../world.ts'

let chain: DevChain
let world: World
let screening: FakeScreening

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [chain], boot: { depositPollMsMax: 200, screening } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

interface Managed {
  readonly path: string
  readonly id: string
  readonly address: Address
}

async function made(org: Org, path: string, body: object): Promise<Managed> {
  const response = await world.call(org.testKey, 'POST', path, body)
  return {
    id: String(response.body.id),
    path: `${path}/${response.body.id}`,
    address: response.body.address as Address,
  }
}

async function aMaster(org: Org): Promise<Managed & { readonly child: Managed }> {
  const master = await made(org, '/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  return { ...master, child: await made(org, `${master.path}/child-addresses`, {}) }
}

/** Sends minted tokens, whose sender is the zero address, and waits until they are booked. */
async function receive(org: Org, wallet: Managed, raw: bigint, isFrozen: boolean): Promise<void> {
  const result = isFrozen ? 'flagged' : 'clear'
  screening.setResult(zeroAddress, { result, reason: isFrozen ? 'listed' : 'clean', oracle: 'clean' })
  const hash = await fundToken(chain, 'USDC', wallet.address, raw)
  const booked = async () =>
    (await world.call(org.testKey, 'GET', `${wallet.path}/transactions`)).list.map(({ txHash }) => txHash)
  await expect.poll(booked, { timeout: 60_000 }).toContain(hash)
}

const retire = (org: Org, { path }: Managed) => world.call(org.testKey, 'DELETE', path)

async function isRecorded({ id }: Managed): Promise<boolean> {
  const row = await world.database.db.one(
    z.object({ is: z.boolean() }),
    sql`select retired_with_frozen as is from master_wallets where id = ${id}`,
  )
  return row.is
}

test('a wallet with only frozen money is retired, and the money that is released later must be moved first', async () => {
  const org = await world.organisation()
  const [frozen, mixed] = [await aMaster(org), await aMaster(org)]
  await receive(org, frozen, 2_000_000n, true)
  await receive(org, frozen.child, 1n, true)
  await receive(org, mixed.child, 1_500_000n, true)
  await receive(org, mixed.child, 500_000n, false)
  const refused = await retire(org, mixed)
  expect([refused.status, codeOf(refused)]).toEqual([409, 'wallet-not-empty'])
  expect(refused.body.holdings).toEqual([
    expect.objectContaining({ walletId: mixed.child.id, tokenSymbol: 'USDC', formattedBalance: '2' }),
  ])
  expect((await retire(org, frozen)).status).toBe(204)
  expect(await isRecorded(frozen)).toBe(true)
  const { list } = await world.call(org.testKey, 'GET', '/organisations/current/audit-log?action=wallets.master.retire')
  expect(list).toMatchObject([{ target: frozen.id, details: { address: frozen.address, hasFrozen: true } }])

  screening.swapList([zeroAddress])
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
  const spendable = async () =>
    (await world.call(org.testKey, 'GET', `${frozen.path}/balances?spendable=true`)).list.map(
      ({ tokenSymbol, parts }) => [tokenSymbol, Object(parts).frozen],
    )
  await expect.poll(spendable, { timeout: 60_000 }).toContainEqual(['USDC', '0'])
  expect((await world.call(org.testKey, 'POST', `${frozen.path}/restore`)).status).toBe(200)
  expect(await isRecorded(frozen)).toBe(false)
  expect(codeOf(await retire(org, frozen))).toBe('wallet-not-empty')
})
