import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createFakeScreening, type FakeScreening } from '../../../../test/screening-double.ts'
import { ShiftedClock } from '../../../../test/webhooks/clock.ts'
import { aWorld, codeOf, type Org, unreachableMain, type World } from '../../../../test/world.ts'
import type { Screened } from '../../../partners/screening/port.ts'
import { sql } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { screeningRecurring } from './tasks.ts'

const hourMs = 3_600_000
const clean: Screened = { result: 'clear', reason: 'clean', oracle: 'clean' }
const listed: Screened = { result: 'flagged', reason: 'listed', oracle: 'clean' }
const nobodyKnows: Screened = { result: 'pending', reason: 'oracle-failed', oracle: 'failed' }

let world: World
let org: Org
let clock: ShiftedClock
let screening: FakeScreening

/** A process without background work: the tests start due work themselves. */
beforeEach(async () => {
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  world = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' }, boot: { clock, screening } })
  org = await world.organisation()
})
afterEach(() => world.stop())

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

async function statusOf(walletId: string): Promise<unknown> {
  const { body } = await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${walletId}`)
  return body.amlStatus
}

const Recorded = z.object({
  result: z.string(),
  reason: z.string(),
  address: z.string(),
  listVersion: z.bigint(),
  oracle: z.string(),
})

function historyOf(walletId: string): Promise<z.output<typeof Recorded>[]> {
  return world.database.db.many(
    Recorded,
    sql`select result, reason, address, list_version, oracle from screenings where subject_id = ${walletId} order by id`,
  )
}

async function changesOf(walletId: string): Promise<unknown[]> {
  const { list } = await world.call(org.testKey, 'GET', '/organisations/current/audit-log')
  return list
    .filter(({ action, target }) => action === 'wallets.byo.screen' && target === walletId)
    .map(({ details }) => z.looseObject({ from: z.string(), to: z.string() }).parse(details))
    .map(({ from, to }) => `${from} to ${to}`)
    .reverse()
}

function challenge(walletId: string) {
  return world.call(org.testKey, 'POST', '/payments/challenge', {
    walletId,
    resource: 'https://api.example.com/a',
    price: '0.01',
  })
}

test('a wallet is screened as soon as it is registered, if work runs', async () => {
  const { id } = await world.wallet(org)
  expect(await statusOf(id)).toBe('pending')
  await world.another({ role: 'work' })
  await expect.poll(() => statusOf(id)).toBe('clear')
})

test('a listed wallet is flagged, inactive, and takes no payment; the audit log and the history have the reason', async () => {
  const { id, address } = await world.wallet(org)
  screening.setResult(address, listed)
  await screenWhatIsDue()
  const { body } = await world.call(org.testKey, 'GET', `/wallet-infra/byo-wallets/${id}`)
  expect(body).toMatchObject({ amlStatus: 'flagged', isActive: false })
  const refused = await challenge(id)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'wallet-flagged'])
  expect(await historyOf(id)).toEqual([
    { result: 'flagged', reason: 'listed', address: address.toLowerCase(), listVersion: 1n, oracle: 'clean' },
  ])
  expect(await changesOf(id)).toEqual(['pending to flagged'])
})

test('a wallet is screened daily, each screening is recorded, and only a change is audited', async () => {
  const { id, address } = await world.wallet(org)
  await screenWhatIsDue()
  await screenWhatIsDue()
  expect(screening.requested).toEqual([address])
  clock.forward(21 * hourMs)
  await screenWhatIsDue()
  expect(screening.requested).toHaveLength(1)
  clock.forward(3 * hourMs)
  await screenWhatIsDue()
  expect((await historyOf(id)).map(({ result }) => result)).toEqual(['clear', 'clear'])
  expect(await changesOf(id)).toEqual(['pending to clear'])
})

test('a failing source revokes a clear status, keeps a flag, and never clears', async () => {
  const [was, never, flagged] = [await world.wallet(org), await world.wallet(org), await world.wallet(org)]
  screening.setResult(never.address, nobodyKnows)
  screening.setResult(flagged.address, listed)
  await screenWhatIsDue()
  expect(await Promise.all([was, never, flagged].map(({ id }) => statusOf(id)))).toEqual([
    'clear',
    'pending',
    'flagged',
  ])
  for (const { address } of [was, never, flagged]) screening.setResult(address, nobodyKnows)
  clock.forward(24 * hourMs)
  await screenWhatIsDue()
  expect(await Promise.all([was, never, flagged].map(({ id }) => statusOf(id)))).toEqual([
    'pending',
    'pending',
    'flagged',
  ])
  expect((await challenge(was.id)).status).toBe(200)
  screening.setResult(was.address, clean)
  clock.forward(24 * hourMs)
  await screenWhatIsDue()
  expect(await statusOf(was.id)).toBe('clear')
})

test('a flag is removed by a fresh clear result', async () => {
  const { id, address } = await world.wallet(org)
  screening.setResult(address, listed)
  await screenWhatIsDue()
  screening.setResult(address, clean)
  expect(await statusOf(id)).toBe('flagged')
  clock.forward(24 * hourMs)
  await screenWhatIsDue()
  expect(await changesOf(id)).toEqual(['pending to flagged', 'flagged to clear'])
  expect((await challenge(id)).status).toBe(200)
})

test('a clear result that was requested before the flag was stored does not remove it', async () => {
  const { id, address } = await world.wallet(org)
  const isRequested = Promise.withResolvers<void>()
  const mayAnswer = Promise.withResolvers<void>()
  screening.between = () => {
    isRequested.resolve()
    return mayAnswer.promise
  }
  const early = screenWhatIsDue()
  await isRequested.promise
  screening.between = () => Promise.resolve()
  screening.setResult(address, listed)
  await screenWhatIsDue()
  expect(await statusOf(id)).toBe('flagged')
  mayAnswer.resolve()
  await early
  expect(await statusOf(id)).toBe('flagged')
  expect(await changesOf(id)).toEqual(['pending to flagged'])
})

test('if the list changes during a screening, the screening is repeated before a result is stored', async () => {
  const { id, address } = await world.wallet(org)
  let isSwapped = false
  screening.between = async () => {
    if (isSwapped) return
    isSwapped = true
    screening.swapList([address.toLowerCase()])
    screening.setResult(address, listed)
  }
  await screenWhatIsDue()
  expect(await statusOf(id)).toBe('pending')
  await screenWhatIsDue()
  expect(await statusOf(id)).toBe('flagged')
  expect((await historyOf(id)).map(({ listVersion }) => listVersion)).toEqual([2n])
})

test('a new list screens the addresses that it concerns again, and no others, whatever the letter case', async () => {
  const [added, other] = [await world.wallet(org), await world.wallet(org)]
  await screenWhatIsDue()
  const before = screening.requested.length
  screening.setResult(added.address, listed)
  screening.swapList([added.address.toLowerCase()])
  await screenWhatIsDue()
  expect(screening.requested.slice(before)).toEqual([added.address])
  expect([await statusOf(added.id), await statusOf(other.id)]).toEqual(['flagged', 'clear'])
  screening.setResult(added.address, clean)
  screening.swapList([added.address.toLowerCase()])
  await screenWhatIsDue()
  expect(await statusOf(added.id)).toBe('clear')
})

test('concurrent screenings of one wallet by many processes are one status, and the audit log has one change', async () => {
  const { id, address } = await world.wallet(org)
  screening.setResult(address, listed)
  await Promise.all(Array.from({ length: 8 }, screenWhatIsDue))
  expect(await statusOf(id)).toBe('flagged')
  expect(await changesOf(id)).toEqual(['pending to flagged'])
})

test('while the result stays pending for the same reason, the history has one line a day', async () => {
  const { id, address } = await world.wallet(org)
  screening.setResult(address, nobodyKnows)
  for (let hour = 0; hour < 30; hour++) {
    await screenWhatIsDue()
    clock.forward(hourMs)
  }
  expect(screening.requested.length).toBeGreaterThan(20)
  expect((await historyOf(id)).map(({ reason }) => reason)).toEqual(['oracle-failed', 'oracle-failed'])
})

test('one address that two organisations registered is screened for each, in each environment', async () => {
  const other = await world.organisation()
  const body = { address: (await world.wallet(org)).address, chain: 'base', supportedTokens: ['USDC'] }
  const made = [
    await world.call(org.liveKey, 'POST', '/wallet-infra/byo-wallets', body),
    await world.call(other.testKey, 'POST', '/wallet-infra/byo-wallets', body),
  ]
  expect(made.map(({ status }) => status)).toEqual([201, 201])
  screening.setResult(body.address, listed)
  await screenWhatIsDue()
  const seen = await Promise.all(
    [org.testKey, org.liveKey, other.testKey].map((key) => world.call(key, 'GET', '/wallet-infra/byo-wallets')),
  )
  expect(seen.map(({ list }) => list.map(({ amlStatus }) => amlStatus))).toEqual([
    ['flagged'],
    ['flagged'],
    ['flagged'],
  ])
})

test('a deleted wallet is not screened, nor updated if it is deleted meanwhile', async () => {
  const { id } = await world.wallet(org)
  screening.between = async () => {
    await world.call(org.testKey, 'DELETE', `/wallet-infra/byo-wallets/${id}`)
  }
  await screenWhatIsDue()
  expect(await historyOf(id)).toEqual([])
  const before = screening.requested.length
  clock.forward(48 * hourMs)
  await screenWhatIsDue()
  expect(screening.requested.length).toBe(before)
})

test('more wallets than fit one query are all screened in one run', async () => {
  for (let n = 0; n < 130; n++) await world.wallet(org)
  await screenWhatIsDue()
  const { count } = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from byo_wallets where aml_status = 'clear'`,
  )
  expect(count).toBe(130n)
})

test('a run continues behind the organisations that the previous run reached, however long their backlogs are', async () => {
  const organisations = 52
  screening.addressesMax = 1
  await world.wallet(org)
  await world.database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at)
    select 'org_' || lpad(n::text, 26, '0'), name, type, plan, created_at from organisations, generate_series(0, ${organisations - 1}) as n where id = ${org.id}`)
  await world.database.db.run(sql`
    insert into byo_wallets (id, organisation_id, environment, address, chain, network, supported_tokens, metadata, aml_status, aml_due_at, created_at)
    select 'byw_' || lpad(n::text, 26, '0'), 'org_' || lpad((n % ${organisations})::text, 26, '0'), 'test', '0x' || lpad(to_hex(n), 40, '0'),
      chain, network, supported_tokens, metadata, 'pending', aml_due_at, created_at
    from byo_wallets, generate_series(1, ${3 * organisations}) as n`)
  const alone = screeningRecurring.filter(({ name }) => name === 'wallets.screen-due')
  // A run has 50 batches, here of one wallet each.
  for (let run = 0; run < 2; run += 1) for (const work of alone) await work.run(systemCtx(world.server.deps))
  const { reached } = await world.database.db.one(
    z.object({ reached: z.bigint() }),
    sql`select count(distinct organisation_id) as reached from byo_wallets where aml_status = 'clear'`,
  )
  expect([screening.requested.length, reached]).toEqual([100, BigInt(organisations + 1)])
})

test('wallets whose result the database refuses are due again later, and hide none behind them', async () => {
  const { db } = world.database
  const refused = await Promise.all(Array.from({ length: 3 }, () => world.wallet(org)))
  await db.run({
    values: [],
    text: `alter table byo_wallets add constraint refused check (aml_status <> 'flagged')`,
  })
  for (const { address } of refused) screening.setResult(address, listed)
  // Without following the list, which is a newer one in each run and makes pending wallets due.
  const alone = screeningRecurring.filter(({ name }) => name === 'wallets.screen-due')
  const screen = async () => {
    for (const work of alone) await work.run(systemCtx(world.server.deps))
  }
  await screen()
  expect(screening.requested).toHaveLength(3)
  clock.forward(1_000)
  await screen()
  expect(screening.requested).toHaveLength(3)
  await db.run({ values: [], text: 'alter table byo_wallets drop constraint refused' })
  clock.forward(61_000)
  await screenWhatIsDue()
  expect(await Promise.all(refused.map(({ id }) => statusOf(id)))).toEqual(['flagged', 'flagged', 'flagged'])
})
