import { newTypeId } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../src/admin/run.ts'
import { findClaimed } from '../src/features/payments/facilitator/discovery-store.ts'
import { findFingerprint } from '../src/features/payments/record-store.ts'
import { countNextQuarter, markQuarters, recountChanged } from '../src/features/payments/rollups/rollup-store.ts'
import { listTakenClaims } from '../src/features/payments/store.ts'
import { utcMonthOf } from '../src/platform/clock.ts'
import { sql } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import { partitionedTables, plain } from '../src/platform/db/partitions.ts'
import { addPastMonths } from './past-months.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from './world.ts'

let world: World
let org: Org
let other: Org
let wallet: string
let months: Date[]

const now = new Date()
const route = 'https://api.example.com/weather'

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
  org = await world.organisation()
  other = await world.organisation()
  wallet = (await world.wallet(org)).id
  const tables = partitionedTables.filter(({ table }) => table === 'payments')
  months = await addPastMonths(world.database.db, now, 5, tables)
})
afterAll(() => world?.stop())

const nameOf = (month: Date): string => `payments_from_${utcMonthOf(month).replace('-', '_')}`
const get = (path: string, key = org.testKey): Promise<Answer> => world.call(key, 'GET', path)
const post = (path: string, body: object): Promise<Answer> => world.call(org.testKey, 'POST', path, body)
const shown = (response: Answer): [number, string] => [response.status, codeOf(response)]

function admin(settings: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const place = world.config.files
  const FILES_DIR = 'directory' in place ? place.directory : ''
  return runAdmin(['admin', 'archive', ...args], { DATABASE_URL: world.database.url, FILES_DIR, ...settings })
}

let bought = 0

const verify = (credential: string): Promise<Answer> =>
  post('/payments/verify', {
    protocol: 'x402',
    credential,
    price: '0.25',
    walletId: wallet,
    resource: route,
    method: 'GET',
  })

/** A settled payment of that month, as if it had been recorded then; the id of its log is its own, as those of older versions were. */
async function paid(month: Date): Promise<{ id: string; logId: string; credential: string; settlementToken: unknown }> {
  const { db } = world.database
  const credential = `stub_payment_${++bought}`
  const { body } = await verify(credential)
  const at = new Date(month.getTime() + 86_400_000 + bought * 1_000)
  const random = new Uint8Array(10).fill(bought)
  const [id, logId] = [
    newTypeId('pay', at.getTime(), random),
    newTypeId('plog', at.getTime(), random.fill(100 + bought)),
  ]
  const settlementToken = body.settlementToken
  await db.tx(async (tx) => {
    await tx.run(
      sql`create temporary table moved on commit drop as select * from payments where id = ${String(body.paymentId)}`,
    )
    await tx.run(sql`delete from payments where id = ${String(body.paymentId)}`)
    await tx.run(sql`delete from payment_claims where payment_id = ${String(body.paymentId)}`)
    await tx.run(
      sql`update moved set id = ${id}, log_id = ${logId}, created_at = ${at}, settled_at = ${at}, payment_identifier = ${`identifier_${bought}`}`,
    )
    await tx.run(sql`insert into payments select * from moved`)
  })
  return { id, logId, credential, settlementToken }
}

async function countAll(): Promise<void> {
  const { db } = world.database
  await markQuarters(db)
  while (await countNextQuarter(db));
  await recountChanged(db)
}

const kept = { PAYMENTS_KEPT_DAYS: '60' }

test('payments stay unless the operator says for how long, and while one of the month is open, unread, uncounted, refunded or opens a session', async () => {
  const { db } = world.database
  const [month = now, next = now] = months
  const { id } = await paid(month)
  const planned = async (settings = kept) => (await admin(settings, '--before', utcMonthOf(next))).stdout
  expect(await planned({} as typeof kept)).toContain('PAYMENTS_KEPT_DAYS is not set')
  expect(await planned()).toContain('payments are not counted yet')
  await countAll()
  expect(await planned()).toMatch(/ready$/m)
  expect(await planned({ PAYMENTS_KEPT_DAYS: '3650' })).toContain('answered until')
  expect((await admin({ PAYMENTS_KEPT_DAYS: 'x' }, '--before', utcMonthOf(next))).stderr).toContain(
    'PAYMENTS_KEPT_DAYS',
  )

  const uses: readonly (readonly [reason: string, set: string, undo: string])[] = [
    ['a payment is open', `status = 'settling'`, `status = 'settled'`],
    ['a payment is still checked', 'check_at = now()', 'check_at = null'],
    ['a session is to be revoked', `status = 'voided', session_id = 'sess_x'`, `status = 'settled', session_id = null`],
  ]
  for (const [reason, set, undo] of uses) {
    await db.run(plain(`update payments set ${set} where id = '${id}'`))
    await countAll()
    expect(await planned()).toContain(reason)
    await db.run(plain(`update payments set ${undo} where id = '${id}'`))
  }
  await countAll()
  await db.tx(async (tx) => {
    await tx.run(sql`set local session_replication_role = replica`)
    await tx.run(sql`
      insert into payment_refunds (id, organisation_id, environment, payment_id, transfer_id, raw_amount, created_at)
      values ('rfd_x', ${org.id}, 'test', ${id}, 'wtx_x', 1, now())`)
  })
  expect(await planned()).toContain('a refund is pending')
  const refused = await admin(kept, '--before', utcMonthOf(next), '--run', 'yes')
  expect(refused.stdout).toContain('a refund is pending')
  expect((await get(`/payments/${id}`)).status).toBe(200)
  await db.run(sql`delete from payment_refunds`)
  const opened = await post('/sessions', { paymentId: id, expiresIn: 600 })
  expect(opened.status).toBe(201)
  expect(await planned()).toContain('a session is open')
  await db.run(sql`update sessions set expires_at = now()`)
  expect(await planned()).toMatch(/ready$/m)
})

test('an archived payment is 410 for its organisation, what it used up stays used, and no total changes', async () => {
  const { db } = world.database
  const [first = now, second = now, third = now] = months
  const one = await paid(first)
  const two = await paid(second)
  const stays = await paid(third)
  const opened = await post('/sessions', { paymentId: two.id, expiresIn: 600 })
  const { sessionId, vaultId } = opened.body
  await db.run(sql`update sessions set expires_at = now()`)
  await countAll()
  const period = `from=${first.toISOString()}&to=${now.toISOString()}`
  const totals = async () => [
    (await get('/account/payment-logs/summary')).list,
    (await get(`/account/payment-logs/summary?${period}&route=${encodeURIComponent(route)}`)).list,
    (await get(`/payments/statistics?from=${first.toISOString()}&to=${third.toISOString()}&interval=day`)).body,
  ]
  const before = await totals()
  const done = await admin(kept, '--before', utcMonthOf(third), '--run', 'yes')
  expect([done.exitCode, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toContain(`${nameOf(second)}  archived, 1 rows in 1 files`)
  expect(await totals()).toEqual(before)

  for (const { id, logId, credential, settlementToken } of [one, two]) {
    const gone = [
      await get(`/payments/${id}`),
      await get(`/payments/${id}/refunds`),
      await get(`/payments/logs/${logId}`),
      await get(`/account/payment-logs/${logId}`),
      await post(`/payments/${id}/refund`, {}),
      await post('/payments/settle', { paymentId: id, settlementToken }),
      await post('/sessions', { paymentId: id }),
      await post(`/payments/${id}/redemption`, { redemptionToken: 'x' }),
    ]
    expect(gone.slice(0, 7).map(shown)).toEqual(Array.from({ length: 7 }, () => [410, 'archived']))
    for (const key of [other.testKey, org.liveKey]) {
      expect(shown(await get(`/payments/${id}`, key))).toEqual([404, 'payment-not-found'])
      expect(shown(await get(`/payments/logs/${logId}`, key))).toEqual([404, 'payment-log-not-found'])
    }
    expect(shown(await verify(credential))).toEqual([409, 'duplicate-payment'])
    const claimKey = `stub:${org.id}:test:${credential}`
    expect(await listTakenClaims(db, [claimKey])).toEqual(new Set([claimKey]))
    expect(await findClaimed(db, claimKey)).toBeUndefined()
  }
  const named = { payer: '', paymentIdentifier: `identifier_${bought}` }
  expect(await findFingerprint(db, { organisationId: org.id, environment: 'test' }, named)).toBe('')
  expect(shown(await get(`/payments/${firstIdAt('pay', first.getTime())}`))).toEqual([404, 'payment-not-found'])

  const logs = (await get('/account/payment-logs')).list.map(({ paymentId }) => paymentId)
  expect(logs).toContain(stays.id)
  expect(logs).not.toContain(one.id)
  expect((await get(`/sessions/${sessionId}`)).body).toMatchObject({ sessionId, vaultId, isExpired: true })
  expect((await get('/sessions')).list.map((session) => session.sessionId)).toContain(sessionId)
  expect(codeOf(await get(`/vaults/${vaultId}`))).not.toBe('internal-error')

  const changes = sql`select (select count(*) from payment_rollup_changes) + (select count(*) from payment_refunds) as count`
  expect(await db.one(z.object({ count: z.bigint() }), changes)).toEqual({ count: 0n })
})
