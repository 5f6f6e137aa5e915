import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createPublicClient, http, parseEther } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Managed, masters, path, patient, stranger, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
/** A process without a gas budget, so that a child's gas comes from its master. */
let frugal: string
/** Another process, which waits for no block. */
let hasty: string

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { transferWaitMs: 30_000 }, boot: { depositPollMsMax: 100 } })
  frugal = (await world.another({ role: 'api', settleNanoUsdPerDayMax: 0n })).base
  hasty = (await world.another({ role: 'api', transferWaitMs: 0 })).base
})
beforeEach(async () => {
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

async function aMaster(rawUsdc = 0n, wei = 10n ** 18n): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, master.address, wei)
  if (rawUsdc > 0n) await fundToken(chain, 'USDC', master.address, rawUsdc)
  return master
}

async function aChild(master: Managed, rawUsdc: bigint): Promise<Managed> {
  const { body } = await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(body.id), address: body.address as Address }
  await fundToken(chain, 'USDC', child.address, rawUsdc)
  return child
}

function bodyOf(from: Managed, amount: string, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', toAddress: stranger() }
  return { fromWalletId: from.id, amount, ...usual, ...changes }
}

function send(body: unknown, base = world.base): Promise<Answer> {
  return request(base, { key: org.testKey, method: 'POST', path, body })
}

const usdcOf = (address: Address) => tokenBalance(chain, 'USDC', address)
const ethOf = (address: Address) => createPublicClient({ transport: http(chain.rpcUrl) }).getBalance({ address })

/** Blocks the booking of deposits until the work is done, as when the watcher's node is behind. */
async function whileNobodyBooks(work: () => Promise<void>): Promise<void> {
  const { db } = world.database
  await db.run(
    sql`update deposit_cursors set leader = 'nobody', epoch = epoch + 1, lease_until = now() + interval '1 hour'`,
  )
  try {
    await work()
  } finally {
    await db.run(sql`update deposit_cursors set lease_until = now()`)
  }
}

test('money that the watcher has not booked cannot be sent or swept, and can be as soon as it is booked', async () => {
  const master = await aMaster(2_000_000n)
  const child = await aChild(master, 1_000_000n)
  await untilBooked(world, chain)
  expect((await send(bodyOf(master, '1'))).status).toBe(201)
  await whileNobodyBooks(async () => {
    await fundToken(chain, 'USDC', master.address, 5_000_000n)
    await fundToken(chain, 'USDC', child.address, 4_000_000n)
    const refused = await send(bodyOf(master, '1.000001'))
    expect([refused.status, codeOf(refused)], 'whether funds are short is unknown').toEqual([503, 'chain-unavailable'])
    const swept = await world.call(org.testKey, 'POST', `${masters}/${master.id}/sweep`, { token: 'USDC' })
    expect(swept.body.children).toMatchObject([{ amount: '1' }])
  })
  expect((await send(bodyOf(master, '6'))).status).toBe(201)
})

const Open = z.object({ open: z.bigint() })

async function untilAtRest(): Promise<void> {
  const open = async () =>
    (
      await world.database.db.one(
        Open,
        sql`
        select (select count(*) from transfers where ended_at is null)
          + (select count(*) from sweep_transfers where status in ('planned', 'signed', 'sent')) as open`,
      )
    ).open
  await expect.poll(open, patient).toBe(0n)
}

test('concurrent transfers of three processes and sweeps use exactly a child’s balance, and none of them fails', async () => {
  const master = await aMaster()
  const child = await aChild(master, 10_000_000n)
  const begun = Date.now()
  const bodies = Array.from({ length: 30 }, () => bodyOf(child, '0.9'))
  const sweep = () => world.call(org.testKey, 'POST', `${masters}/${master.id}/sweep`, { token: 'USDC' })
  const [sent, swept] = await Promise.all([
    Promise.all(bodies.map((body, index) => send(body, [world.base, frugal, hasty][index % 3]))),
    Promise.all([sweep(), sweep()]),
  ])
  expect(Date.now() - begun).toBeLessThan(60_000)
  expect(swept.map(({ status }) => status)).toEqual([202, 202])
  const { 201: taken = 0, 422: refused = 0 } = countByStatus(sent)
  expect(taken + refused).toBe(30)
  await untilAtRest()
  const arrived = await Promise.all(bodies.map(({ toAddress }) => usdcOf(toAddress)))
  expect(arrived.filter((raw) => raw === 900_000n).length).toBe(taken)
  const rest = 10_000_000n - BigInt(taken) * 900_000n
  expect((await usdcOf(master.address)) + (await usdcOf(child.address))).toBe(rest)
  const failed = await world.database.db.many(
    z.object({ reason: z.string().nullable() }),
    sql`
    select reason from transfers where wallet_id = ${child.id} and status = 'failed'
    union all select failure_reason from sweep_transfers where child_address_id = ${child.id} and status = 'failed'`,
  )
  expect(failed).toEqual([])
})

function setPolicy(master: Managed, policy: unknown): Promise<Answer> {
  return world.call(org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)
}

test('gas and top-ups are limited by the cap of the coin, over the master and all its children', async () => {
  const master = await aMaster()
  const children = await Promise.all(Array.from({ length: 3 }, () => aChild(master, 1_000_000n)))
  const cap = { perTransaction: '0', perDay: '0.001' }
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '1' }, ETH: cap } }
  expect((await setPolicy(master, policy)).status).toBe(200)
  let denied: Answer | undefined
  for (let sent = 0; sent < 60 && denied === undefined; sent++) {
    const child = children[sent % 3]
    if (child === undefined) throw new Error('no child')
    const response = await send(bodyOf(child, '0.000001'), frugal)
    if (response.status !== 201) denied = response
  }
  expect([denied?.status, denied?.body.rule, denied?.body.token, denied?.body.cap]).toEqual([
    403,
    'perDay',
    'ETH',
    '0.001',
  ])
  await untilAtRest()
  expect(10n ** 18n - (await ethOf(master.address))).toBeLessThanOrEqual(parseEther('0.001'))
  const coin = await send(bodyOf(master, '0.0001', { fromToken: 'ETH', toToken: 'ETH' }))
  expect([coin.status, coin.body.rule], 'a cap per transaction applies to the amount sent').toEqual([
    403,
    'perTransaction',
  ])
})

test('under a policy without recipients a child may still send to its own master, and to nobody else', async () => {
  const master = await aMaster()
  const child = await aChild(master, 3_000_000n)
  await fundNative(chain, child.address, 10n ** 17n)
  expect((await setPolicy(master, { operations: {}, tokens: {} })).status).toBe(200)
  const home = await send(bodyOf(child, '2', { toAddress: master.address }))
  expect([home.status, home.body.status]).toEqual([201, 'confirmed'])
  const coin = { fromToken: 'ETH', toToken: 'ETH', toAddress: master.address }
  expect((await send(bodyOf(child, '0.05', coin))).status).toBe(201)
  const other = await aMaster()
  for (const toAddress of [stranger(), other.address])
    expect((await send(bodyOf(child, '0.5', { toAddress }))).body.rule).toBe('operation')
  expect(await usdcOf(master.address)).toBe(2_000_000n)
})

test('a balance that is read after a transfer was answered as confirmed includes the transfer, at every process', async () => {
  const master = await aMaster(5_000_000n)
  const balance = async (base: string) => {
    const at = `${masters}/${master.id}/balances`
    const { list, body } = await request(base, { key: org.testKey, method: 'GET', path: at })
    return JSON.stringify(list.length > 0 ? list : body)
  }
  expect(await balance(world.base)).toContain('"5"')
  expect(await balance(hasty)).toContain('"5"')
  expect((await send(bodyOf(master, '2'))).body.status).toBe('confirmed')
  expect(await balance(world.base)).toContain('"3"')
  expect(await balance(hasty)).toContain('"3"')
})

test('reservations of a finished transfer no longer count, and are deleted', async () => {
  const master = await aMaster(3_000_000n)
  for (const amount of ['1', '1', '1']) expect((await send(bodyOf(master, amount))).status).toBe(201)
  await untilAtRest()
  await fundToken(chain, 'USDC', master.address, 1_000_000n)
  expect((await send(bodyOf(master, '1'))).status).toBe(201)
})
