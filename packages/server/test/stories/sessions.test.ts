import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, type World } from '../world.ts'

let world: World
let other: string
let org: Org
let wallet: string
/** How far the clock of both processes is ahead of the machine's. */
let aheadMs = 0
const clock = { now: () => new Date(Date.now() + aheadMs) }

beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' }, boot: { clock } })
  other = (await world.another()).base
  org = await world.organisation()
  wallet = (await world.wallet(org)).id
})
afterAll(() => world?.stop())

const resource = 'https://api.example.com/weather?city=Lima'
const host = 'api.example.com'

async function paid(to = wallet, at: string | undefined = resource): Promise<string> {
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: to, resource: at }
  const verified = await world.call(org.testKey, 'POST', '/payments/verify', body)
  expect(verified.status).toBe(200)
  return String(verified.body.paymentId)
}

function open(paymentId: string, fields: object = {}, key = org.testKey, headers = {}): Promise<Answer> {
  return world.call(key, 'POST', '/sessions', { paymentId, ...fields }, headers)
}

function verify({ body }: Answer, changes: object = {}, key = org.testKey): Promise<Answer> {
  const { sessionToken } = body
  return world.call(key, 'POST', '/sessions/verify', { sessionToken, host, walletId: wallet, ...changes })
}

function countOf(table: 'sessions' | 'vaults', paymentId: string): Promise<number> {
  const where = sql`where payment_id = ${paymentId}`
  const statement =
    table === 'sessions' ? sql`select count(*) from sessions ${where}` : sql`select count(*) from vaults ${where}`
  return world.database.db.one(z.object({ count: z.bigint() }), statement).then(({ count }) => Number(count))
}

test('a payment opens a session with a vault, and both are in its log', async () => {
  const paymentId = await paid()
  const opened = await open(paymentId, { expiresIn: 600 })
  const { sessionId, vaultId, sessionToken, ...rest } = opened.body
  expect(opened.status).toBe(201)
  expect(sessionToken).toMatch(new RegExp(`^${sessionId}\\.[A-Za-z0-9_-]{43}$`))
  expect(rest).toEqual({ isExpired: false, expiresAt: expect.any(String) })
  expect(Date.parse(String(rest.expiresAt)) - clock.now().getTime()).toBeGreaterThan(590_000)
  expect(Date.parse(String(rest.expiresAt)) - clock.now().getTime()).toBeLessThanOrEqual(600_000)

  const shown = { sessionId, vaultId, ...rest }
  expect((await world.call(org.testKey, 'GET', `/sessions/${sessionId}`)).body).toEqual(shown)
  expect((await world.call(org.testKey, 'GET', '/sessions?limit=1')).list).toEqual([shown])
  expect((await verify(opened)).body).toEqual(shown)
  expect((await world.call(org.testKey, 'GET', `/payments/${paymentId}`)).body).toMatchObject({ sessionId, vaultId })
  const vault = await world.call(org.testKey, 'GET', `/vaults/${vaultId}`)
  expect(vault.body).toMatchObject({ id: vaultId, sessionId, status: 'active' })
})

test('the default is a day, and less than a minute or more than a week is refused', async () => {
  const opened = await open(await paid())
  const seconds = (Date.parse(String(opened.body.expiresAt)) - clock.now().getTime()) / 1_000
  expect(Math.round(seconds / 60)).toBe(24 * 60)
  for (const expiresIn of [59, 604_801, 60.5, '3600', -1]) {
    const refused = await open(await paid(), { expiresIn })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  }
  for (const expiresIn of [60, 604_800]) expect((await open(await paid(), { expiresIn })).status).toBe(201)
})

test('twenty requests at once for one payment, at two processes, make one session, one vault and one valid token', async () => {
  const paymentId = await paid()
  const ask = (base: string) =>
    request(base, { key: org.testKey, method: 'POST', path: '/sessions', body: { paymentId } })
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(index % 2 === 0 ? world.base : other)))
  expect(countByStatus(answers)).toEqual({ 200: 19, 201: 1 })
  expect(new Set(answers.map(({ body }) => `${body.sessionId} ${body.vaultId} ${body.expiresAt}`)).size).toBe(1)
  expect(new Set(answers.map(({ body }) => body.sessionToken)).size).toBe(20)
  const checks = await Promise.all(answers.map((response) => verify(response)))
  expect(countByStatus(checks)).toEqual({ 200: 1, 402: 19 })
  expect([await countOf('sessions', paymentId), await countOf('vaults', paymentId)]).toEqual([1, 1])
})

test('another request returns a new token of the same session, and the earlier token becomes invalid', async () => {
  const paymentId = await paid()
  const first = await open(paymentId, { expiresIn: 600 })
  const again = await open(paymentId, { expiresIn: 60_000 })
  expect(again.status).toBe(200)
  const { sessionToken: _, ...session } = first.body
  expect(again.body).toEqual({ ...session, sessionToken: expect.not.stringMatching(String(first.body.sessionToken)) })
  expect([(await verify(first)).status, (await verify(again)).status]).toEqual([402, 200])
})

test('the same Idempotency-Key returns the same token, which is sealed in the database', async () => {
  const paymentId = await paid()
  const headers = { 'idempotency-key': `session-${paymentId}` }
  const [first, again] = [
    await open(paymentId, {}, org.testKey, headers),
    await open(paymentId, {}, org.testKey, headers),
  ]
  expect([again.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([201, first.body, 'true'])
  expect((await verify(again)).status).toBe(200)
  const secret = String(first.body.sessionToken).split('.')[1] ?? ''
  const found = await world.database.db.many(
    z.object({ row: z.string() }),
    sql`select s::text as row from sessions s union all select encode(sealed_body, 'escape') from idempotency_keys where sealed_body is not null
      union all select payload::text from events union all select details::text from audit_log`,
  )
  expect(found.length).toBeGreaterThan(0)
  expect(found.filter(({ row }) => row.includes(secret))).toEqual([])
})

test('a session grants access to its host and its wallet alone, and a leaked id alone grants none', async () => {
  const opened = await open(await paid())
  const { id: wallet2 } = await world.wallet(org)
  const { sessionId, sessionToken } = opened.body
  const stranger = await world.organisation()
  const refusals = [
    await verify(opened, { host: 'evil.example.com' }),
    await verify(opened, { host: 'example.com' }),
    await verify(opened, { host: `${host}:8443` }),
    await verify(opened, { walletId: wallet2 }),
    await verify(opened, { sessionToken: sessionId }),
    await verify(opened, { sessionToken: `${sessionId}.` }),
    await verify(opened, { sessionToken: `${sessionId}.${'A'.repeat(43)}` }),
    await verify(opened, { sessionToken: `${sessionToken}A` }),
    await verify(opened, { sessionToken: `sess_01h455vb4pex5vsknk084sn02q.${'A'.repeat(43)}` }),
    await verify(opened, { sessionToken: `, ${sessionToken}` }),
    await verify(opened, {}, org.liveKey),
    await verify(opened, {}, stranger.testKey),
  ]
  const reported = refusals.map(({ status, body: { requestId: _, ...body } }) =>
    JSON.stringify({ httpStatus: status, ...body }),
  )
  expect(refusals.map((response) => [response.status, codeOf(response)])).toEqual(
    refusals.map(() => [402, 'session-not-found']),
  )
  expect(new Set(reported).size).toBe(1)
  expect((await verify(opened, { host: 'API.example.COM' })).status).toBe(200)
  expect((await verify(opened, { walletId: wallet2, otherWalletIds: [wallet] })).status).toBe(200)
})

test('a payment without an address binds its session to none: it has a vault and grants access to no route', async () => {
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: wallet }
  const { paymentId } = (await world.call(org.testKey, 'POST', '/payments/verify', body)).body
  const opened = await open(String(paymentId))
  expect(opened.status).toBe(201)
  expect((await verify(opened)).status).toBe(402)
})

test.each(['the weather', 'mailto:seller@example.com'])(
  'a payment for %j binds its session to no host',
  async (named) => {
    const paymentId = await paid()
    await world.database.db.run(sql`update payments set resource = ${named} where id = ${paymentId}`)
    const opened = await open(paymentId)
    expect([opened.status, (await verify(opened)).status]).toEqual([201, 402])
  },
)

test('a session ends at its time to the millisecond, and its vault remains', async () => {
  const paymentId = await paid()
  const opened = await open(paymentId, { expiresIn: 60 })
  const { sessionId, vaultId } = opened.body
  try {
    aheadMs += 59_000
    expect((await verify(opened)).status).toBe(200)
    aheadMs += 1_001
    expect([(await verify(opened)).status, codeOf(await verify(opened))]).toEqual([402, 'session-not-found'])
    expect((await world.call(org.testKey, 'GET', `/sessions/${sessionId}`)).body).toMatchObject({ isExpired: true })
    const again = await open(paymentId)
    expect([again.status, again.body.sessionId, again.body.isExpired]).toEqual([200, sessionId, true])
    expect((await verify(again)).status).toBe(402)
    expect((await world.call(org.testKey, 'GET', `/vaults/${vaultId}`)).status).toBe(200)
  } finally {
    aheadMs = 0
  }
})

test('a payment of another tenant, or one that does not exist, opens no session', async () => {
  const paymentId = await paid()
  const stranger = await world.organisation()
  for (const response of [
    await open(paymentId, {}, stranger.testKey),
    await open(paymentId, {}, org.liveKey),
    await open('pay_01h455vb4pex5vsknk084sn02q'),
  ]) {
    expect([response.status, codeOf(response)]).toEqual([422, 'payment-not-found'])
  }
  expect(await countOf('sessions', paymentId)).toBe(0)
})

test('session, vault, counter and payment change together or not at all', async () => {
  const paymentId = await paid()
  const usedNow = async () => (await world.call(org.testKey, 'GET', '/vaults/quota')).body
  const before = await usedNow()
  const { db } = world.database
  await db.run(
    sql`create function refuse_session() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$`,
  )
  await db.run(
    sql`create trigger refuse_session after update of session_id on payments for each row execute function refuse_session()`,
  )
  expect((await open(paymentId)).status).toBe(500)
  await db.run(sql`drop trigger refuse_session on payments`)
  expect([await countOf('sessions', paymentId), await countOf('vaults', paymentId)]).toEqual([0, 0])
  expect(await usedNow()).toEqual(before)
  expect((await open(paymentId)).status).toBe(201)
  expect([await countOf('sessions', paymentId), await countOf('vaults', paymentId)]).toEqual([1, 1])
})

test('a session without quota for its vault is not made, and is once there is quota again', async () => {
  const small = await world.organisation('hobby')
  const { id: walletId } = await world.wallet(small)
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId, resource }
  const { paymentId } = (await world.call(small.testKey, 'POST', '/payments/verify', body)).body
  const vaults: string[] = []
  for (let made = 0; made < 3; made++)
    vaults.push(String((await world.call(small.testKey, 'POST', '/vaults', {})).body.id))
  const refused = await open(String(paymentId), {}, small.testKey)
  expect([refused.status, codeOf(refused), refused.body.limit]).toEqual([429, 'vault-quota-exceeded', 3])
  expect(await countOf('sessions', String(paymentId))).toBe(0)
  expect((await world.call(small.testKey, 'GET', `/payments/${paymentId}`)).body).toMatchObject({
    sessionId: null,
    vaultId: null,
  })

  expect((await world.call(small.testKey, 'DELETE', `/vaults/${vaults[0]}`)).status).toBe(204)
  const opened = await open(String(paymentId), {}, small.testKey)
  expect(opened.status).toBe(201)
  expect(await countOf('vaults', String(paymentId))).toBe(1)
})
