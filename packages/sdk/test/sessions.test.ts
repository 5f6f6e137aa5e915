import { expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import { sessionOpener } from '../src/middleware/grant.ts'
import { openGate, sessionSecondsOf } from '../src/middleware/sessions.ts'
import { apiKey } from './fake-purser.ts'

const token = tokenNumber(1)
const host = 'shop.test'
const inAnHour = '2026-11-21T13:00:00.000Z'
const noon = Date.parse('2026-11-21T12:00:00.000Z')

function tokenNumber(number: number): string {
  return `sess_01h455vb4pex5vsknk084sn02q.${String(number).padStart(43, 'A')}`
}

function sessionUntil(expiresAt: string) {
  return { sessionId: 'sess_1', vaultId: 'vlt_1', expiresAt, isExpired: false }
}

/** A gate with scripted responses of Purser, one per call, and a clock that the test moves. */
function aGate(...answers: Response[]) {
  const clock = { now: noon }
  const requested: unknown[] = []
  const response: typeof fetch = async (_input, init) => {
    requested.push(JSON.parse(String(init?.body)))
    const next = answers.length > 1 ? answers.shift() : answers[0]
    return next?.clone() ?? new Response(null, { status: 500 })
  }
  const purser = createPurser({ apiKey, baseUrl: 'https://purser.test', fetch: response, maxRetries: 0 })
  return { gate: openGate(purser, { walletId: 'byw_1' }, () => clock.now), requested, clock }
}

const yes = () => Response.json(sessionUntil(inAnHour))
const no = () => Response.json({ type: 'x/session-not-found', title: 'No', status: 402 }, { status: 402 })

test('a yes is believed for five seconds and not for longer', async () => {
  const { gate, requested, clock } = aGate(yes(), no())
  expect(await gate.check(token, host)).toMatchObject({ sessionId: 'sess_1' })
  clock.now += 4_999
  expect(await gate.check(token, host)).toMatchObject({ sessionId: 'sess_1' })
  expect(requested).toEqual([{ sessionToken: token, host, walletId: 'byw_1' }])
  clock.now += 1
  expect(await gate.check(token, host)).toBeUndefined()
  expect(requested).toHaveLength(2)
})

test('a yes is not believed beyond the end of the session', async () => {
  const { gate, requested, clock } = aGate(Response.json(sessionUntil('2026-11-21T12:00:01.000Z')), no())
  expect(await gate.check(token, host)).toBeDefined()
  clock.now += 1_000
  expect(await gate.check(token, host)).toBeUndefined()
  expect(requested).toHaveLength(2)
})

test('a yes for one host or one token is none for another', async () => {
  const { gate, requested } = aGate(yes(), no())
  expect(await gate.check(token, host)).toBeDefined()
  expect(await gate.check(token, 'other.test')).toBeUndefined()
  expect(await gate.check(tokenNumber(2), host)).toBeUndefined()
  expect(requested).toHaveLength(3)
})

test('a negative or malformed response is not cached', async () => {
  const { gate, requested } = aGate(no(), new Response('down', { status: 502 }), yes())
  expect(await gate.check(token, host)).toBeUndefined()
  await expect(gate.check(token, host)).rejects.toMatchObject({ status: 502 })
  expect(await gate.check(token, host)).toBeDefined()
  expect(requested).toHaveLength(3)
})

test('Purser keeps no answer to a look at a session: none is kept for invented tokens', async () => {
  const keys: unknown[] = []
  const response: typeof fetch = async (_input, init) => {
    keys.push(new Headers(init?.headers).get('idempotency-key'))
    return no()
  }
  const purser = createPurser({ apiKey, baseUrl: 'https://purser.test', fetch: response, maxRetries: 0 })
  const gate = openGate(purser, { walletId: 'byw_1' }, () => noon)
  for (const number of [1, 2]) expect(await gate.check(tokenNumber(number), host)).toBeUndefined()
  expect(keys).toEqual([null, null])
})

test('a hundred calls at once ask once', async () => {
  const { gate, requested } = aGate(yes())
  const answers = await Promise.all(Array.from({ length: 100 }, () => gate.check(token, host)))
  expect([answers.filter((session) => session?.sessionId === 'sess_1').length, requested.length]).toEqual([100, 1])
})

test('above the cache limit the oldest sessions are checked again, and none is admitted unchecked', async () => {
  const { gate, requested } = aGate(yes())
  for (let number = 0; number <= 10_000; number++) await gate.check(tokenNumber(number), host)
  expect(requested).toHaveLength(10_001)
  await gate.check(tokenNumber(10_000), host)
  expect(requested).toHaveLength(10_001)
  await gate.check(tokenNumber(0), host)
  expect(requested).toHaveLength(10_002)
})

test('the session of a payment is opened once, and again only when that failed', async () => {
  const answers = [
    new Response('down', { status: 502 }),
    Response.json({ ...sessionUntil(inAnHour), sessionToken: token }),
  ]
  let calls = 0
  const response: typeof fetch = async () => answers[calls++] ?? new Response(null, { status: 500 })
  const purser = createPurser({ apiKey, baseUrl: 'https://purser.test', fetch: response, maxRetries: 0 })
  const open = sessionOpener(purser, 'pay_1', 60)
  await expect(open()).rejects.toMatchObject({ status: 502 })
  const opened = await Promise.all([open(), open(), open()])
  expect([opened.map(({ sessionToken }) => sessionToken), calls]).toEqual([[token, token, token], 2])
})

test.each([
  ['1m', 60],
  ['24h', 86_400],
  ['7d', 604_800],
  [60, 60],
  [604_800, 604_800],
  [undefined, undefined],
])('a session may last %s', (ttl, seconds) => {
  expect(sessionSecondsOf(ttl)).toBe(seconds)
})

test.each(['', '8d', '59', '1w', '90s', '0m', ' 1h', 59, 604_801, 60.5, Number.NaN, -60])(
  'a session cannot last %j',
  (ttl) => {
    expect(() => sessionSecondsOf(ttl)).toThrow(TypeError)
  },
)
