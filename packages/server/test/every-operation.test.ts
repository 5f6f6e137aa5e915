import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import { sql } from '../src/platform/db/db.ts'
import type { Operation } from '../src/platform/operation.ts'
import { bodySchemaOf, type WireAnswer, whyNotDeclared } from './declared.ts'
import { hostileBodies } from './hostile-json.ts'
import { asKey, asSent, operationOf, problemOf, type Requested, sendRaw } from './raw-requests.ts'
import { addressNumber, makeResources, type Resources, resource } from './resources.ts'
import { type Sample, samplesOf } from './samples.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
/** Owns the resources of the samples. */
let org: Org
let ids: Resources

beforeAll(async () => {
  world = await aWorld({ config: { testFaucetKey: `0x${'11'.repeat(32)}` } })
  org = await world.organisation()
  ids = await makeResources(world, org)
})
afterAll(async () => {
  await world?.stop()
})

/** Operations in order, with those that remove the samples' resources last. */
const inOrder = [...operations].sort(
  (left, right) => Number(left.method === 'DELETE') - Number(right.method === 'DELETE'),
)
const each = inOrder.map((operation) => [operation.id, operation] as const)
const withBody = each.filter(([, { input }]) => input !== undefined)
const withParams = each.filter(([id, { params }]) => params !== undefined && id !== 'chains.tokens')
const withQuery = each.filter(([, { query }]) => query !== undefined)

function sampleOf(operation: Operation): Sample {
  return samplesOf(ids)[operation.id]?.() ?? {}
}

function sendSample(operation: Operation, key: string, changes: Requested = {}): Promise<WireAnswer> {
  return sendRaw(world.base, operation, { ...asSent(operation, key, sampleOf(operation)), ...changes })
}

test('the service serves the documented operations and no others', () => {
  const served = world.server.operations.map(({ id }) => id)
  expect(served.toSorted()).toEqual(operations.map(({ id }) => id).toSorted())
})

test('every operation has a sample here, and every sample an operation', () => {
  expect(Object.keys(samplesOf(ids)).sort()).toEqual(operations.map(({ id }) => id).sort())
})

test.each(each)('%s without a valid key is 401 `unauthorized` with the documented detail', async (_, operation) => {
  const spoilt = `${org.testKey.slice(0, -1)}${org.testKey.endsWith('0') ? '1' : '0'}`
  const good = asKey(org.testKey)
  const { authorization: _key, ...none } = good
  for (const headers of [
    none,
    { ...good, authorization: org.testKey },
    asKey(spoilt),
    asKey('svc_test_sk_x'),
    { ...good, authorization: 'Basic YTpi' },
  ]) {
    const response = await sendSample(operation, '', { headers })
    expect(problemOf(response)).toMatchObject({
      type: 'http://purser.test/problems/unauthorized',
      title: 'Unauthorized',
      status: 401,
      httpStatus: 401,
    })
    expect(JSON.parse(response.text).detail).toMatch(/^API key is invalid or missing/)
    expect(whyNotDeclared(operation, response)).toBeUndefined()
  }
})

/** These worlds have no chain: an operation that needs one is refused for that, after every other check. */
const asksAChain = [
  'test.deposits.create',
  'test.payments.create',
  'wallets.master.retire',
  'wallets.deposits.rescan',
  'wallets.byo.balances',
  'wallets.master.balances',
  'wallets.children.balances',
  'wallets.master.sweep',
  'payments.refund',
  'transfers.create',
  'wallets.pay',
  'transfers.quote',
  'withdrawals.create',
  'wallets.legacy.balance',
  'wallets.legacy.withdraw',
]
/** Operations for people, or for the invited account; `sign-in*.test.ts` covers them. */
const forPeople = [
  'account.sessions.list',
  'account.sessions.end',
  'account.invitations.accept',
  'account.invitations.decline',
  'organisations.delete',
]
const isWithoutChain = (id: string, { status, text }: { readonly status: number; readonly text: string }): boolean =>
  asksAChain.includes(id) && status === 503 && /\/problems\/(chain-not-configured|partner-unavailable)/.test(text)

/** Refused for every API key: a person who is signed in calls them. */
const needsAPerson = ['approvals.approve', 'approvals.refuse']

test.each(each.filter(([, { method }]) => method !== 'DELETE'))(
  '%s answers a valid request as openapi.json says',
  async (id, operation) => {
    const response = await sendSample(operation, org.testKey)
    expect(whyNotDeclared(operation, response)).toBeUndefined()
    if (needsAPerson.includes(id)) expect(response.text).toContain('/problems/approval-needs-person')
    else if (forPeople.includes(id)) expect([403, 404]).toContain(response.status)
    else if (asksAChain.includes(id)) expect(isWithoutChain(id, response), response.text).toBe(true)
    else expect(response.status, response.text).toBeLessThan(300)
  },
)

const malformed: readonly (readonly [body: string | Uint8Array<ArrayBuffer>, statuses: readonly number[]])[] = [
  ['{', [400]],
  ['{"a":1}x', [400]],
  ['\u0000', [400]],
  ['{"__proto__":{"a":1}}', [400]],
  ['{"constructor":{"prototype":{}}}', [400]],
  [Uint8Array.of(0x22, 0xc3, 0x28, 0x22), [400]],
  [`${'['.repeat(10_000)}${']'.repeat(10_000)}`, [400]],
  [`${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, [400]],
  ['null', [422]],
  ['[]', [422]],
  ['7', [422]],
  ['"text"', [422]],
  ['{"noSuchField":true}', [422]],
]

test.each(withBody)('%s refuses a malformed body with a problem that names the fault', async (id, operation) => {
  for (const [body, statuses] of malformed) {
    const response = await sendSample(operation, org.testKey, { body })
    expect(statuses, `${response.text} to ${String(body).slice(0, 40)}`).toContain(response.status)
    expect(whyNotDeclared(operation, response)).toBeUndefined()
  }
  const asText = await sendSample(operation, org.testKey, {
    headers: { ...asKey(org.testKey), 'content-type': 'text/plain' },
  })
  expect(asText.status).toBe(415)
  const withExtra = await sendSample(operation, org.testKey, {
    body: JSON.stringify({ ...Object(sampleOf(operation).body), noSuchField: 1 }),
  })
  // Other servers add their own members to what they send to a facilitator.
  if (id.startsWith('facilitator.')) return expect(withExtra.status).toBe(200)
  expect([withExtra.status, JSON.parse(withExtra.text).errors]).toEqual([
    422,
    [expect.objectContaining({ path: expect.stringContaining('') })],
  ])
})

test.each(withBody)(
  '%s names every field that is missing or of the wrong type by its JSON Pointer',
  async (_, operation) => {
    const body: Record<string, unknown> = Object(sampleOf(operation).body)
    const { required, properties } = Object(bodySchemaOf(operation))
    for (const name of Object.keys(body)) {
      const wrongs: readonly unknown[] = [
        null,
        7,
        [],
        {},
        true,
        ...(Array.isArray(required) && required.includes(name) ? [undefined] : []),
      ]
      const isOfType = (value: unknown): boolean =>
        typeof value === typeof body[name] && Array.isArray(value) === Array.isArray(body[name])
      const { type, anyOf = [] } = Object(Object(properties)[name])
      const types: unknown[] = [type, ...anyOf.map((schema: { type?: string }) => schema.type)].flat()
      const isTaken = (value: unknown): boolean => value === null && types.includes('null')
      for (const wrong of wrongs.filter((value) => !isOfType(value) && !isTaken(value))) {
        const response = await sendSample(operation, org.testKey, { body: JSON.stringify({ ...body, [name]: wrong }) })
        expect([response.status, whyNotDeclared(operation, response)], `${name} = ${JSON.stringify(wrong)}`).toEqual([
          422,
          undefined,
        ])
        expect(JSON.stringify(JSON.parse(response.text).errors)).toContain(`"/${name}`)
      }
    }
  },
)

const hostileIds = ['none', '%00', '..%2f..', 'x'.repeat(400), '%E2%80%AE', "'--", `org_${'0'.repeat(26)}`]

test.each(withParams)('%s answers an impossible id like one that does not exist', async (_, operation) => {
  const { orgId, ...named } = sampleOf(operation).params ?? {}
  for (const hostile of hostileIds) {
    const params = Object.fromEntries(Object.keys(named).map((name) => [name, hostile]))
    const response = await sendSample(operation, org.testKey, {
      params: { ...params, orgId: orgId === undefined || Object.keys(named).length === 0 ? hostile : orgId },
    })
    expect([response.status, whyNotDeclared(operation, response)], hostile).toEqual([
      Object.keys(named).length === 0 ? 401 : 404,
      undefined,
    ])
  }
})

const unstorable = ['\u0000', '\ud800', 'a\udfffb']

test.each(withBody)('%s refuses text that PostgreSQL cannot store, in any place', async (_, operation) => {
  const body = Object(sampleOf(operation).body)
  for (const [name, value] of Object.entries(body)) {
    for (const text of unstorable) {
      const spoilt =
        typeof value === 'string' ? value + text : Array.isArray(value) ? [text] : { deep: [{ [text]: 1 }, text] }
      const response = await sendSample(operation, org.testKey, { body: JSON.stringify({ ...body, [name]: spoilt }) })
      expect([name, whyNotDeclared(operation, response)]).toEqual([name, undefined])
      // The facilitator's protocol has a specific answer for a payment that cannot be read.
      const isProtocols = operation.takesAnyText === true && name !== 'x402Version'
      if (isProtocols) expect(response.text).toMatch(/"(invalid|error)Reason":"invalid_payload"/)
      expect([name, response.status]).toEqual([name, isProtocols ? 200 : 422])
    }
  }
})

test.each(withQuery)('%s refuses such text in each parameter of its query', async (_, operation) => {
  for (const name of Object.keys(
    Object(operation.query !== undefined && 'shape' in operation.query && operation.query.shape),
  )) {
    for (const text of ['%00', 'a%00b', 'usdc%00']) {
      const response = await sendSample(operation, org.testKey, { query: `?${name}=${text}` })
      expect([`${name}=${text}`, response.status, whyNotDeclared(operation, response)]).toEqual([
        `${name}=${text}`,
        422,
        undefined,
      ])
    }
  }
})

test('metadata may contain any text that PostgreSQL can store, also text that looks like an escape', async () => {
  const metadata = { 'a\\u0000': ['\\ud800', '\u{1f600}', 'ü'], deep: { nothing: null } }
  const operation = operationOf('wallets.byo.create')
  const body = JSON.stringify({ ...Object(sampleOf(operation).body), metadata })
  expect((await sendSample(operation, org.testKey, { body })).status).toBe(201)
})

const hostileQueries = [
  '?limit=0',
  '?limit=501',
  '?limit=-1',
  '?limit=1.5',
  '?limit=1e1',
  '?limit=abc',
  '?limit=',
  '?limit=1&limit=2',
  '?cursor=x',
  '?cursor=',
  '?cursor=%00',
  '?cursor=b3JnXzAx',
  '?noSuch=1',
  '?%00=1',
  '?__proto__=1',
  '?limit[]=1',
  `?cursor=${'A'.repeat(600)}`,
]
const hostileFilters = [
  'route=%00',
  'route=%ED%A0%80',
  'route=%FF',
  'walletId=%00',
  'apiKeyId=%00',
  'protocol=ach',
  'from=yesterday',
  'to=2026-13-01T00:00:00Z',
  'from=%00',
  'from=0000-01-01T00:00:00Z',
  'to=9999-12-31T23:59:59Z',
  "walletId='",
]

test.each(withQuery)('%s refuses every query that it does not understand, and fails on none', async (id, operation) => {
  const queries = [...hostileQueries, ...(id.includes('ogs') ? hostileFilters.map((filter) => `?${filter}`) : [])]
  for (const query of queries) {
    const response = await sendSample(operation, org.testKey, { query })
    expect(whyNotDeclared(operation, response), query).toBeUndefined()
    // A key that names what only a person may read is refused after its query was read.
    expect([forPeople.includes(id) ? 403 : 200, 422], `${query} ${response.text}`).toContain(response.status)
  }
  expect((await sendSample(operation, org.testKey, { query: '?noSuch=1' })).status).toBe(422)
})

/** `FUZZ_RUNS=1000` makes a long one. */
const runsPerOperation = Number(process.env.FUZZ_RUNS ?? 100)
const atOnce = 20
const fuzzMsMax = 25_000

test(`${runsPerOperation} random bodies per operation find no 500 and no answer that openapi.json does not declare`, async () => {
  const until = performance.now() + fuzzMsMax
  const faults = new Map<string, string>()
  const bodiesOf = ([, operation]: (typeof withBody)[number]) =>
    fc.sample(
      hostileBodies(bodySchemaOf(operation), () => Object(sampleOf(operation).body), knownTexts()),
      { numRuns: runsPerOperation, seed: 2_026 },
    )
  const queues = withBody.map((entry) => ({ entry, bodies: bodiesOf(entry) }))
  // In turn, so that a slow machine runs fewer rounds of each and omits none.
  for (let from = 0; from < runsPerOperation && performance.now() < until; from += atOnce) {
    for (const { entry, bodies } of queues) {
      const [id, operation] = entry
      await Promise.all(
        bodies.slice(from, from + atOnce).map(async (value) => {
          const body = JSON.stringify(value)
          const response = await sendSample(operation, org.testKey, { body })
          const isFault = response.status >= 500 && !isWithoutChain(id, response)
          const fault = isFault ? `${response.status} ${response.text}` : whyNotDeclared(operation, response)
          if (fault !== undefined) faults.set(id, `${body}: ${fault}`)
        }),
      )
    }
  }
  expect([...faults]).toEqual([])
})

function knownTexts(): string[] {
  const others = [
    '0.01',
    '1000',
    'stub_payment_accepted',
    'stub_payment_1',
    'USDC',
    'base',
    'GET',
    'eip155:84532',
    'a@example.com',
    '127.0.0.1',
  ]
  return [...Object.values(ids), ...others, resource, addressNumber(0)]
}

test.each(each.filter(([, { method }]) => method === 'DELETE'))(
  '%s answers a valid request as openapi.json says, after all these attempts',
  async (_, operation) => {
    await world.database.db.run(sql`update api_keys set revoked_at = now() where name not like 'First%'`)
    // Another owner: the attempts may have used up the changes of settings of the first one.
    const fresh = await world.organisation()
    ids = await makeResources(world, fresh)
    const response = await sendSample(operation, fresh.testKey)
    const refused = forPeople.includes(operation.id) ? 403 : 204
    const status = isWithoutChain(operation.id, response) ? 503 : refused
    expect([response.status, whyNotDeclared(operation, response)]).toEqual([status, undefined])
  },
)
