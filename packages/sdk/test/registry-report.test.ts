import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import type { Fault } from '../src/middleware/faults.ts'
import { openReports, type SoldCall } from '../src/middleware/registry-report.ts'
import { bodySeen, headersSeen, querySeen } from '../src/middleware/request-shape.ts'
import { apiKey, type FakePurser, problem, startFakePurser } from './fake-purser.ts'

let fake: FakePurser
let faults: Fault[]
let clock: number
beforeEach(async () => {
  fake = await startFakePurser()
  faults = []
  clock = 1_000_000
})
afterEach(() => fake.stop())

function reports() {
  const purser = createPurser({ apiKey, baseUrl: fake.baseUrl })
  return openReports({ purser, onFault: (fault) => void faults.push(fault), now: () => clock })
}

function sold(
  path: string,
  changes: Partial<SoldCall['context']> = {},
  look: SoldCall['look'] = { headerNames: [] },
): SoldCall {
  const context = { method: 'GET', price: '0.01', resource: `https://shop.test${path}`, ...changes }
  return { context, protocol: 'x402', basePath: '', contentType: undefined, look }
}

/**
 * Waits for this many reports. They are sent one by one, in order, so when the last one is the expected one, there
 * were no others.
 */
async function arrived(count: number): Promise<Record<string, unknown>[]> {
  await expect.poll(() => fake.calls('/registry/snapshots').length).toBe(count)
  return fake.calls('/registry/snapshots').map(({ body }) => body)
}

const routes = (bodies: readonly Record<string, unknown>[]) => bodies.map(({ routePattern }) => routePattern)

test('a route is reported once an hour for each method and price, however often and under whatever identifiers it is sold', async () => {
  const report = reports()
  for (let call = 0; call < 50; call++) report(sold(`/users/${call}?n=${call}`))
  report(sold('/users/7', { price: '0.02' }))
  report(sold('/users/7', { method: 'POST' }))
  clock += 3_599_999
  report(sold('/users/8'))
  clock += 1
  report(sold('/users/9'))
  const users = (method: string, amount: string) =>
    expect.objectContaining({ method, amount, routePattern: '/users/{id}' })
  report(sold('/last'))
  expect(await arrived(5)).toEqual([
    users('GET', '0.01'),
    users('GET', '0.02'),
    users('POST', '0.01'),
    users('GET', '0.01'),
    expect.objectContaining({ routePattern: '/last' }),
  ])
  expect(faults).toEqual([])
})

test('while a hundred wait the others are passed over, and a route that was passed over is reported when it is sold again', async () => {
  const report = reports()
  for (let route = 0; route < 150; route++) report(sold(`/route${route}`))
  await arrived(100)
  report(sold('/route149'))
  const expected = [...Array.from({ length: 100 }, (_, route) => `/route${route}`), '/route149']
  expect(routes(await arrived(101))).toEqual(expected)
})

test('at most a thousand routes an hour are remembered and reported', async () => {
  const report = reports()
  for (let from = 0; from < 1_000; from += 100) {
    for (let route = from; route < from + 100; route++) report(sold(`/route${route}`))
    await arrived(from + 100)
  }
  report(sold('/too-many'))
  clock += 3_600_000
  report(sold('/last'))
  expect(routes(await arrived(1_001)).slice(-2)).toEqual(['/route999', '/last'])
})

test('a failure is reported once and not retried within the hour, and the next route is still reported', async () => {
  fake.script('/registry/snapshots', problem(503, 'service-unavailable'), { status: 202, body: { accepted: true } })
  const report = reports()
  report(sold('/one'))
  await arrived(1)
  report(sold('/one'))
  report(sold('/two'))
  expect(routes(await arrived(2))).toEqual(['/one', '/two'])
  await expect.poll(() => faults.map(({ stage }) => stage)).toEqual(['registry'])
})

test('names and kinds are seen, and no value of a header, a query or a body', () => {
  const query = new URLSearchParams('city=leak&n=7&x=1.5&on=true&tag=leak&tag=b&')
  const body = { city: 'leak', hours: 6, dry: false, tags: ['leak'], more: { deep: 'leak' }, none: null }
  const seen = [headersSeen(['X-Units', 'host', 'PAYMENT-SIGNATURE']), querySeen(query), bodySeen(body)]
  const named = seen.map((params) => params.map(({ name, type }) => `${name}: ${type}`))
  expect(named).toEqual([
    ['x-units: string'],
    ['city: string', 'n: number', 'x: number', 'on: boolean', 'tag: array'],
    ['city: string', 'hours: number', 'dry: boolean', 'tags: array', 'more: object', 'none: null'],
  ])
  expect(JSON.stringify(seen)).not.toContain('leak')
})

test.each([
  ['a value in place of a name', 'V1StGXR8_Z5jdHi6B-myTw'],
  ['a number', '4711'],
  ['an empty name', ''],
  ['a NUL', 'a\u0000'],
  ['half a surrogate pair', 'a\ud800'],
  ['a very long name', 'x'.repeat(65)],
])('%s is no name and is left out', (_case, name) => {
  expect(bodySeen({ [name]: 1, city: 1 })).toEqual([{ name: 'city', type: 'number', required: false }])
})

test.each([undefined, null, 'text', 7, [{ a: 1 }], new Uint8Array(4), new Map([['a', 1]])])(
  'a body that is no plain object has no members: %s',
  (body) => {
    expect(bodySeen(body)).toEqual([])
  },
)

test('of a thousand names 32 are reported', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => `name${index}x`)
  expect(bodySeen(Object.fromEntries(many.map((name) => [name, 1])))).toHaveLength(32)
  expect(headersSeen(many)).toHaveLength(32)
  expect(querySeen(new URLSearchParams(many.map((name) => [name, '1'])))).toHaveLength(32)
})

test('a malformed call is reported as a fault and has no other effect', async () => {
  const report = reports()
  report(sold('', { resource: 'no address' }))
  expect(faults.map(({ stage }) => stage)).toEqual(['registry'])
  report(sold('/next'))
  await arrived(1)
})
