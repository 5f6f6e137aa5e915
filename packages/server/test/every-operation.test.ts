import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import type { Operation } from '../src/platform/operation.ts'
import { bodySchemaOf, type WireAnswer, whyNotDeclared } from './declared.ts'
import { hostileBodies } from './hostile-json.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
/** Owns what the samples name. */
let org: Org
let other: Org
let ids: Readonly<Record<'byw' | 'pay' | 'plog' | 'key' | 'acc' | 'org' | 'token', string>>

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  other = await world.organisation()
  ids = await resourcesOf(org, org.testKey)
})
afterAll(async () => {
  await world?.stop()
})

const resource = 'https://api.example.com/weather'

async function resourcesOf(owner: Org, key: string): Promise<typeof ids> {
  const wallet = await world.wallet(owner, { key })
  const body = { protocol: 'x402', credential: 'stub_payment_accepted', price: '0.01', walletId: wallet.id, resource }
  const verified = await world.call(key, 'POST', '/payments/verify', body)
  const [log] = (await world.call(key, 'GET', '/payments/logs?limit=1')).list
  const spare = await world.call(key, 'POST', '/organisations/current/api-keys', { name: 'spare', environment: 'test' })
  const member = await world.call(key, 'POST', '/organisations/current/members', {
    email: `viewer${++sampleNumber}@example.com`,
    role: 'viewer',
  })
  const found = {
    byw: wallet.id,
    pay: verified.body.paymentId,
    plog: log?.id,
    key: spare.body.id,
    acc: member.body.accountId,
    org: owner.id,
    token: verified.body.settlementToken,
  }
  return Object.fromEntries(Object.entries(found).map(([name, value]) => [name, String(value)])) as typeof ids
}

interface Sample {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
}

let sampleNumber = 0

/** One good request for every operation, naming resources of `org` in the test environment. */
const samples: Readonly<Record<string, () => Sample>> = {
  'payments.challenge': () => ({
    body: {
      walletId: ids.byw,
      resource,
      price: '0.01',
      description: 'Weather',
      mimeType: 'text/plain',
      digest: 'd',
      count: 2,
    },
  }),
  'payments.verify': () => ({
    body: {
      protocol: 'x402',
      credential: 'stub_payment_accepted',
      price: '0.01',
      walletId: ids.byw,
      resource,
      method: 'GET',
      description: 'Weather',
    },
  }),
  'payments.settle': () => ({ body: { paymentId: ids.pay, settlementToken: ids.token } }),
  'payments.get': () => ({ params: { id: ids.pay } }),
  'payments.logs.list': () => ({}),
  'payments.logs.summary': () => ({}),
  'payments.logs.get': () => ({ params: { paymentLogId: ids.plog } }),
  'account.paymentLogs.list': () => ({}),
  'account.paymentLogs.summary': () => ({}),
  'account.paymentLogs.get': () => ({ params: { paymentLogId: ids.plog } }),
  'wallets.byo.create': () => ({
    body: {
      address: addressNumber(++sampleNumber),
      chain: 'base',
      supportedTokens: ['USDC'],
      name: 'Till',
      metadata: { shop: ['a', { b: 1 }] },
    },
  }),
  'wallets.byo.list': () => ({}),
  'wallets.byo.get': () => ({ params: { id: ids.byw } }),
  'wallets.byo.delete': () => ({ params: { id: ids.byw } }),
  'chains.list': () => ({}),
  'chains.tokens': () => ({ params: { chain: 'base' } }),
  'organisations.create': () => ({ body: { name: 'Another' } }),
  'organisations.current': () => ({}),
  'organisations.update': () => ({ body: { name: 'Renamed' } }),
  'organisations.auditLog': () => ({}),
  'organisations.members.list': () => ({}),
  'organisations.members.add': () => ({ body: { email: `somebody${++sampleNumber}@example.com`, role: 'member' } }),
  'organisations.members.update': () => ({ params: { accountId: ids.acc }, body: { role: 'admin' } }),
  'organisations.members.remove': () => ({ params: { accountId: ids.acc } }),
  'organisations.apiKeys.create': () => ({ body: { name: 'one', environment: 'test' } }),
  'organisations.apiKeys.list': () => ({}),
  'organisations.apiKeys.revoke': () => ({ params: { keyId: ids.key } }),
  'organisations.apiKeys.createIn': () => ({ params: { orgId: ids.org }, body: { name: 'two' } }),
  'organisations.apiKeys.listIn': () => ({ params: { orgId: ids.org } }),
  'organisations.apiKeys.revokeIn': () => ({ params: { orgId: ids.org, keyId: ids.key } }),
  'account.get': () => ({}),
  'account.usage': () => ({}),
  'billing.usage': () => ({}),
  'billing.plan': () => ({}),
  'billing.rebuildCache': () => ({}),
}

function addressNumber(number: number): string {
  return `0x${number.toString(16).padStart(40, 'b')}`
}

/** Operations in an order that ends with those that take the samples' resources away. */
const inOrder = [...operations].sort(
  (left, right) => Number(left.method === 'DELETE') - Number(right.method === 'DELETE'),
)
const each = inOrder.map((operation) => [operation.id, operation] as const)
const withBody = each.filter(([, { input }]) => input !== undefined)
const withParams = each.filter(([id, { params }]) => params !== undefined && id !== 'chains.tokens')
const withQuery = each.filter(([, { query }]) => query !== undefined)

function sampleOf(operation: Operation): Sample {
  return samples[operation.id]?.() ?? {}
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly params?: Readonly<Record<string, string>>
  readonly query?: string
  /** As it goes over the wire. */
  readonly body?: string | Uint8Array<ArrayBuffer> | undefined
}

async function send(operation: Operation, { headers = {}, params = {}, query = '', body }: Sent): Promise<WireAnswer> {
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? 'none')
  const response = await fetch(`${world.base}${path}${query}`, {
    method: operation.method,
    headers,
    ...(body === undefined ? {} : { body }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function asKey(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
}

function sendSample(operation: Operation, key: string, changes: Sent = {}): Promise<WireAnswer> {
  const { params, body } = sampleOf(operation)
  const text = body === undefined ? undefined : JSON.stringify(body)
  return send(operation, {
    headers: asKey(key),
    ...(params === undefined ? {} : { params }),
    ...(operation.method === 'GET' ? {} : { body: text }),
    ...changes,
  })
}

/** Status and problem without its request id: what must not differ between what is another's and what never was. */
function problemOf({ status, text }: WireAnswer): unknown {
  const { requestId: _, ...problem } = JSON.parse(text)
  return { httpStatus: status, ...problem }
}

test('every operation has a sample here, and every sample an operation', () => {
  expect(Object.keys(samples).sort()).toEqual(operations.map(({ id }) => id).sort())
})

test.each(each)('%s without a good key is 401 in the document’s words', async (_, operation) => {
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
    const answer = await sendSample(operation, '', { headers })
    expect(problemOf(answer)).toMatchObject({
      type: 'http://purser.test/problems/unauthorized',
      title: 'Unauthorized',
      status: 401,
      httpStatus: 401,
    })
    expect(JSON.parse(answer.text).detail).toMatch(/^API key is invalid or missing/)
    expect(whyNotDeclared(operation, answer)).toBeUndefined()
  }
})

test.each(each.filter(([, { method }]) => method !== 'DELETE'))(
  '%s answers a good request as openapi.json says',
  async (_, operation) => {
    const answer = await sendSample(operation, org.testKey)
    expect(whyNotDeclared(operation, answer)).toBeUndefined()
    expect(answer.status, answer.text).toBeLessThan(300)
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

test.each(withBody)('%s refuses a malformed body with a problem that names the fault', async (_, operation) => {
  for (const [body, statuses] of malformed) {
    const answer = await sendSample(operation, org.testKey, { body })
    expect(statuses, `${answer.text} to ${String(body).slice(0, 40)}`).toContain(answer.status)
    expect(whyNotDeclared(operation, answer)).toBeUndefined()
  }
  const asText = await sendSample(operation, org.testKey, {
    headers: { ...asKey(org.testKey), 'content-type': 'text/plain' },
  })
  expect(asText.status).toBe(415)
  const withExtra = await sendSample(operation, org.testKey, {
    body: JSON.stringify({ ...Object(sampleOf(operation).body), noSuchField: 1 }),
  })
  expect([withExtra.status, JSON.parse(withExtra.text).errors]).toEqual([
    422,
    [expect.objectContaining({ path: expect.stringContaining('') })],
  ])
})

test.each(withBody)(
  '%s names every field that is missing or of the wrong type by its JSON Pointer',
  async (_, operation) => {
    const body: Record<string, unknown> = Object(sampleOf(operation).body)
    const required = Object(bodySchemaOf(operation)).required
    for (const name of Object.keys(body)) {
      const wrongs: readonly unknown[] = [
        null,
        7,
        [],
        {},
        true,
        ...(Array.isArray(required) && required.includes(name) ? [undefined] : []),
      ]
      for (const wrong of wrongs.filter(
        (value) => typeof value !== typeof body[name] || Array.isArray(value) !== Array.isArray(body[name]),
      )) {
        const answer = await sendSample(operation, org.testKey, { body: JSON.stringify({ ...body, [name]: wrong }) })
        expect([answer.status, whyNotDeclared(operation, answer)], `${name} = ${JSON.stringify(wrong)}`).toEqual([
          422,
          undefined,
        ])
        expect(JSON.stringify(JSON.parse(answer.text).errors)).toContain(`"/${name}`)
      }
    }
  },
)

test.each(withParams)(
  '%s answers another organisation, and the other environment, as if the resource had never been',
  async (_, operation) => {
    const { params = {} } = sampleOf(operation)
    const never = Object.fromEntries(
      Object.entries(params).map(([name, id]) => [
        name,
        name === 'orgId' ? id : `${id.split('_')[0]}_01h455vb4pex5vsknk084sn02q`,
      ]),
    )
    const inPath = operation.organisationInPath === true
    const organisationWide = /\.members\./.test(operation.id)
    const strangers = [other.testKey, other.liveKey, ...(organisationWide || inPath ? [] : [org.liveKey])]
    for (const key of strangers) {
      const answers = await Promise.all([sendSample(operation, key), sendSample(operation, key, { params: never })])
      const [theirs, missing] = answers.map(problemOf)
      expect(theirs).toEqual(missing)
      expect([answers[0]?.status, answers.map((answer) => whyNotDeclared(operation, answer))]).toEqual([
        inPath ? 401 : 404,
        [undefined, undefined],
      ])
    }
    for (const hostile of [
      'none',
      '%00',
      '..%2f..',
      `${'x'.repeat(400)}`,
      '%E2%80%AE',
      "'--",
      `org_${'0'.repeat(26)}`,
    ]) {
      const params = Object.fromEntries(Object.keys(never).map((name) => [name, name === 'orgId' ? org.id : hostile]))
      const answer = await sendSample(operation, org.testKey, { params })
      if ('orgId' in never && Object.keys(never).length === 1) continue
      expect([answer.status, whyNotDeclared(operation, answer)], hostile).toEqual([404, undefined])
    }
  },
)

test('a live key is to a test key of its organisation as one that never was', async () => {
  const { body: live } = await world.call(org.liveKey, 'POST', '/organisations/current/api-keys', { name: 'live one', environment: 'live' })
  for (const id of ['organisations.apiKeys.revoke', 'organisations.apiKeys.revokeIn']) {
    const asked = (keyId: unknown) => sendSample(operationOf(id), org.testKey, { params: { orgId: org.id, keyId: String(keyId) } })
    const answer = await asked(live.id)
    expect([answer.status, problemOf(answer)]).toEqual([404, problemOf(await asked('key_01h455vb4pex5vsknk084sn02q'))])
  }
  for (const id of ['organisations.apiKeys.list', 'organisations.apiKeys.listIn', 'organisations.auditLog']) {
    expect((await sendSample(operationOf(id), org.testKey)).text).not.toContain(String(live.id))
  }
  expect((await world.call(String(live.key), 'GET', '/organisations/current')).status).toBe(200)
})

test('a payment or a wallet of another organisation, or of the other environment, that a body names is 422 like one that never was', async () => {
  const named = [
    ['payments.challenge', 'walletId', 'byw_01h455vb4pex5vsknk084sn02q'],
    ['payments.verify', 'walletId', 'byw_01h455vb4pex5vsknk084sn02q'],
    ['payments.settle', 'paymentId', 'pay_01h455vb4pex5vsknk084sn02q'],
  ] as const
  for (const [id, field, never] of named) {
    const operation = operationOf(id)
    const body = Object(sampleOf(operation).body)
    for (const key of [other.testKey, other.liveKey, org.liveKey]) {
      const [theirs, missing] = await Promise.all(
        [body, { ...body, [field]: never }].map((one) => sendSample(operation, key, { body: JSON.stringify(one) })),
      )
      if (theirs === undefined || missing === undefined) throw new Error('nothing was answered')
      expect(problemOf(theirs)).toEqual(problemOf(missing))
      expect([theirs.status, whyNotDeclared(operation, theirs)]).toEqual([422, undefined])
    }
  }
})

function operationOf(id: string): Operation {
  const found = operations.find((operation) => operation.id === id)
  if (found === undefined) throw new Error(`no operation ${id}`)
  return found
}

test('no list or total shows anything of another organisation or environment', async () => {
  const lists = operations.filter(({ method, params, organisationInPath }) => method === 'GET' && (params === undefined || organisationInPath === true))
  const shown: string[] = []
  for (const operation of lists) {
    const found = (await Promise.all([other.testKey, other.liveKey].map((key) => sendSample(operation, key)))).map(({ text }) => text)
    // What belongs to the organisation, and the keys and the whole audit log that a live key may read, are not of one environment.
    if (!/^(organisations|account\.get)/.test(operation.id)) found.push((await sendSample(operation, org.liveKey)).text)
    shown.push(...Object.values(ids).filter((id) => found.some((text) => text.includes(id) && !text.includes('/problems/'))))
  }
  expect(shown).toEqual([])
  const totals = ['payments.logs.summary', 'account.paymentLogs.summary', 'payments.logs.list', 'account.paymentLogs.list'].map(operationOf)
  for (const operation of totals) {
    for (const key of [other.testKey, org.liveKey]) {
      for (const query of ['', `?walletId=${ids.byw}`, `?route=${encodeURIComponent(resource)}`]) expect((await sendSample(operation, key, { query })).text).toBe('[]')
    }
  }
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

test.each(withQuery)('%s takes no query that it does not understand, and falls over none', async (id, operation) => {
  const queries = [...hostileQueries, ...(id.includes('ogs') ? hostileFilters.map((filter) => `?${filter}`) : [])]
  for (const query of queries) {
    const answer = await sendSample(operation, org.testKey, { query })
    expect(whyNotDeclared(operation, answer), query).toBeUndefined()
    expect([200, 422], `${query} ${answer.text}`).toContain(answer.status)
  }
  expect((await sendSample(operation, org.testKey, { query: '?noSuch=1' })).status).toBe(422)
})

const runsPerOperation = 300
const atOnce = 20
const fuzzMsMax = 25_000

test('300 random bodies per operation find no 500 and no answer that openapi.json does not declare', async () => {
  const until = performance.now() + fuzzMsMax
  const faults = new Map<string, string>()
  const bodiesOf = ([, operation]: (typeof withBody)[number]) =>
    fc.sample(
      hostileBodies(bodySchemaOf(operation), () => Object(sampleOf(operation).body), knownTexts()),
      { numRuns: runsPerOperation, seed: 2_026 },
    )
  const queues = withBody.map((entry) => ({ entry, bodies: bodiesOf(entry) }))
  // In turn, so that a slow machine shortens the rounds of all and leaves none out.
  for (let from = 0; from < runsPerOperation && performance.now() < until; from += atOnce) {
    for (const { entry, bodies } of queues) {
      const [id, operation] = entry
      await Promise.all(
        bodies.slice(from, from + atOnce).map(async (value) => {
          const body = JSON.stringify(value)
          const answer = await sendSample(operation, org.testKey, { body })
          const fault = answer.status >= 500 ? `${answer.status} ${answer.text}` : whyNotDeclared(operation, answer)
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
  '%s answers a good request as openapi.json says, after all that was tried on it',
  async (_, operation) => {
    ids = await resourcesOf(org, org.testKey)
    const answer = await sendSample(operation, org.testKey)
    expect([answer.status, whyNotDeclared(operation, answer)]).toEqual([204, undefined])
  },
)
