import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  createPurser,
  LimitError,
  NotFoundError,
  PaymentRefusedError,
  PermissionDeniedError,
  type PurserError,
  type PurserOptions,
  UnavailableError,
  ValidationError,
} from '../src/index.ts'
import { nextCursor } from '../src/paging.ts'
import { defaultRetryPolicy, readRetryAfter, retryDelayMs } from '../src/retry.ts'
import { apiKey, type FakePurser, problem, startFakePurser, verification } from './fake-purser.ts'

let fake: FakePurser
beforeEach(async () => {
  fake = await startFakePurser()
})
afterEach(() => fake.stop())

const quick = { delayMsFirst: 1, delayMsMax: 2 }
const client = (options: Partial<PurserOptions> = {}) =>
  createPurser({ apiKey, baseUrl: fake.baseUrl, retry: quick, ...options })
const failure = (promise: Promise<unknown>): Promise<PurserError> =>
  promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error) => error,
  )

const toVerify = {
  protocol: 'x402',
  credential: 'stub_payment_once',
  price: '0.01',
  currency: 'USD',
  walletId: 'byw_1',
  resource: 'http://shop.test/',
  method: 'GET',
} as const

test('a POST that is sent again after a lost answer carries the same idempotency key, and two calls never share one', async () => {
  fake.script('/verify', 'reset', problem(503, 'chain-unavailable'), { status: 200, body: verification({}) })
  const purser = client()
  await purser.payments.verify(toVerify)
  await purser.payments.verify(toVerify)

  const keys = fake.calls('/verify').map(({ headers }) => headers['idempotency-key'])
  expect(keys).toHaveLength(4)
  expect(keys[0]).toMatch(/^.{16,255}$/)
  expect(new Set(keys.slice(0, 3)).size).toBe(1)
  expect(keys[3]).not.toBe(keys[0])
})

test('the key is sent as a bearer token with every request, and the path under the base address is kept', async () => {
  fake.script('/account', { status: 200, body: { id: 'acc_1' } })
  await client({ baseUrl: `${fake.baseUrl}/behind/a/proxy/` }).account.get()
  expect(fake.seen[0]).toMatchObject({ method: 'GET', path: '/behind/a/proxy/account' })
  expect(fake.seen[0]?.headers).toMatchObject({ authorization: `Bearer ${apiKey}` })
  expect(fake.seen[0]?.headers['idempotency-key']).toBeUndefined()
})

test.each([
  [400, 'malformed-json', ValidationError],
  [401, 'unauthorized', AuthenticationError],
  [402, 'payment-verification-failed', PaymentRefusedError],
  [403, 'policy-denied', PermissionDeniedError],
  [404, 'wallet-not-found', NotFoundError],
  [409, 'duplicate-payment', ConflictError],
  [422, 'validation-error', ValidationError],
  [429, 'payment-limit-reached', LimitError],
  [503, 'chain-not-configured', UnavailableError],
])('%i %s is thrown as its own kind of error, at once and without a retry', async (status, code, Kind) => {
  fake.script('/account', problem(status, code))
  const error = await failure(client().account.get())
  expect(error).toBeInstanceOf(Kind)
  expect(error).toMatchObject({ status, code, requestId: 'req_fake', problem: { title: code } })
  expect(fake.seen).toHaveLength(1)
})

test.each([
  [408, 'request-timeout', 3],
  [429, 'rate-limit-exceeded', 3],
  [500, 'internal-error', 3],
  [503, 'chain-unavailable', 3],
])('%i %s is tried again twice and then thrown', async (status, code, attempts) => {
  fake.script('/account', problem(status, code))
  expect(await failure(client().account.get())).toMatchObject({ status, code })
  expect(fake.seen).toHaveLength(attempts)
})

const newTransfer = {
  fromWalletId: 'mwt_1',
  fromToken: 'USDC',
  toAddress: '0x1',
  toChain: 'base',
  toToken: 'USDC',
  amount: '1',
} as const
const inProgress = problem(409, 'idempotency-in-progress', {}, { 'retry-after': '0' })

test('a request whose first attempt still runs is repeated with its key for as long as the service may take', async () => {
  const runs = Array.from({ length: 20 }, () => inProgress)
  fake.script('/transfer', 'reset', ...runs, { status: 201, body: { id: 'wtx_1' } })
  expect(await client().transfers.create(newTransfer)).toEqual({ id: 'wtx_1' })
  expect(fake.seen).toHaveLength(22)
  expect(new Set(fake.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
})

test('a request that runs for longer than that is an error with the key to repeat it with', async () => {
  fake.script('/transfer', inProgress)
  const error = await failure(client().transfers.create(newTransfer))
  expect(error).toMatchObject({ code: 'idempotency-in-progress', isOutcomeKnown: false })
  expect(error.idempotencyKey).toBe(fake.seen[0]?.headers['idempotency-key'])
  expect(fake.seen).toHaveLength(153)
  fake.seen.length = 0
  await failure(client({ maxRetries: 0 }).transfers.create(newTransfer))
  await failure(client({ retry: { ...quick, inProgressMsMax: 0 } }).transfers.create(newTransfer))
  expect(fake.seen).toHaveLength(4)
})

test.each([
  ['a lost response', 'reset', false],
  ['a 503', problem(503, 'chain-unavailable'), false],
  ['a 404 of a proxy', { status: 404, text: '<html>' }, false],
  ['a page of a proxy', { status: 200, text: '<html>' }, false],
  ['a 408', problem(408, 'request-timeout'), false],
  ['a 401', problem(401, 'unauthorized'), true],
  ['a 429', problem(429, 'rate-limit-exceeded'), true],
  ['a 403', problem(403, 'policy-denied'), true],
  ['a 422', problem(422, 'validation-error'), true],
] as const)(
  'after %s an error has the key that was sent, and says whether the outcome is known',
  async (_, doing, isOutcomeKnown) => {
    fake.script('/transfer', doing)
    const error = await failure(
      client({ maxRetries: 0 }).transfers.create(newTransfer, { idempotencyKey: 'invoice-7' }),
    )
    expect(error).toMatchObject({ isOutcomeKnown, idempotencyKey: 'invoice-7' })
  },
)

test.each([
  ['a 401', problem(401, 'unauthorized'), false],
  ['a 403', problem(403, 'policy-denied'), false],
  ['a 429', problem(429, 'rate-limit-exceeded'), false],
  ['a 422', problem(422, 'transfer-reverted'), true],
] as const)(
  'after a lost response, %s decides only if the service looked at the key',
  async (_, doing, isOutcomeKnown) => {
    fake.script('/transfer', 'reset', doing)
    expect(await failure(client().transfers.create(newTransfer))).toMatchObject({ isOutcomeKnown })
  },
)

test('a rate limit before a refusal leaves the refusal known, and a GET has no key', async () => {
  fake.script('/transfer', problem(429, 'rate-limit-exceeded'), problem(401, 'unauthorized'))
  expect(await failure(client().transfers.create(newTransfer))).toMatchObject({ isOutcomeKnown: true })
  fake.script('/account', problem(401, 'unauthorized'))
  expect(await failure(client().account.get())).toMatchObject({ idempotencyKey: undefined })
})

test('an attempt of a payment or a transfer has more time than the service takes, unless the caller says otherwise', async () => {
  const timeout = vi.spyOn(AbortSignal, 'timeout')
  fake.script('/transfer', { status: 201, body: {} })
  fake.script('/pay', { status: 201, body: {} })
  fake.script('/account', { status: 200, body: {} })
  const purser = client()
  await purser.transfers.create(newTransfer)
  await purser.wallets.payUrl({ fromWalletId: 'mwt_1', maxAmount: '1', url: 'https://shop.test/' })
  await purser.request('POST', '/wallet-infra/pay', { body: {} })
  await purser.account.get()
  await client({ timeoutMs: 7_000 }).transfers.create(newTransfer)
  await purser.transfers.create(newTransfer, { timeoutMs: 8_000 })
  expect(timeout.mock.calls.flat()).toEqual([75_000, 75_000, 75_000, 30_000, 7_000, 8_000])
  timeout.mockRestore()
})

test('an error has the members of its problem: the reason of a refusal, the faults of a request, the limit of a plan', async () => {
  fake.script(
    '/payments/verify',
    problem(402, 'payment-verification-failed', { reason: 'invalid_exact_evm_signature' }),
  )
  fake.script(
    '/byo-wallets',
    problem(422, 'validation-error', {
      detail: 'The request is invalid.',
      errors: [{ path: '/address', message: 'no' }, 7],
    }),
  )
  const limit = { limit: 1, current: 1, upgradeUrl: 'http://dash.test' }
  fake.script('/members', problem(429, 'some-limit-reached', limit))
  const purser = client()
  expect(await failure(purser.payments.verify(toVerify))).toMatchObject({ reason: 'invalid_exact_evm_signature' })
  const body = { address: 'x', chain: 'base', supportedTokens: ['USDC'] } as const
  const faults = await failure(purser.wallets.byo.create(body))
  expect(faults).toMatchObject({ errors: [{ path: '/address', message: 'no' }] })
  expect(faults.message).toBe('The request is invalid. /address: no')
  const many = Array.from({ length: 5 }, (_, at) => ({ path: `/events/${at}`, message: 'x'.repeat(500) }))
  fake.script('/byo-wallets', problem(422, 'validation-error', { detail: 'The request is invalid.', errors: many }))
  const shortened = (await failure(purser.wallets.byo.create(body))).message
  expect(shortened).toMatch(/^The request is invalid\. \/events\/0: x+…; .*\/events\/2: x+…; and 2 more$/)
  expect(shortened.length).toBeLessThan(700)
  const member = purser.organisations.members.add({ email: 'a@b.test', role: 'member' })
  expect(await failure(member)).toMatchObject(limit)
})

test('no answer is a ConnectionError: refused, reset, or later than timeoutMs', async () => {
  fake.script('/account', 'reset')
  expect(await failure(client().account.get())).toBeInstanceOf(ConnectionError)
  fake.script('/account', 'hang')
  const late = await failure(client({ timeoutMs: 30, maxRetries: 0 }).account.get())
  expect(late).toBeInstanceOf(ConnectionError)
  expect(late).toMatchObject({ code: 'timeout', status: undefined })
  expect(await failure(client({ baseUrl: 'http://127.0.0.1:1', maxRetries: 0 }).account.get())).toBeInstanceOf(
    ConnectionError,
  )
})

test("a caller's own signal ends the call with its own reason and without another attempt", async () => {
  fake.script('/account', 'hang')
  const caller = new AbortController()
  let attempts = 0
  const abortedOnTheWay: typeof fetch = (input, init) => {
    attempts += 1
    setImmediate(() => caller.abort(new Error('the caller went home')))
    return fetch(input, init)
  }
  const error = await failure(client({ fetch: abortedOnTheWay }).account.get({ signal: caller.signal }))
  expect(error.message).toBe('the caller went home')
  expect(attempts).toBe(1)
})

test('Retry-After is waited for up to a limit, and beyond it the error is thrown at once', async () => {
  fake.script('/account', problem(429, 'rate-limit-exceeded', {}, { 'retry-after': '61' }))
  expect(await failure(client().account.get())).toMatchObject({ retryAfterSeconds: 61 })
  expect(fake.seen).toHaveLength(1)
  expect(retryDelayMs(defaultRetryPolicy, 0, 60, 0.5)).toBe(60_000)
  expect(retryDelayMs(defaultRetryPolicy, 0, 61, 0.5)).toBeUndefined()
})

test('the wait doubles from half a second to eight seconds, less up to a quarter', () => {
  const longest = [0, 1, 2, 3, 4, 5, 6].map((attempt) => retryDelayMs(defaultRetryPolicy, attempt, undefined, 0))
  expect(longest).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
  expect(retryDelayMs(defaultRetryPolicy, 0, undefined, 1)).toBe(375)
  expect(readRetryAfter('7', new Date())).toBe(7)
  expect(readRetryAfter('Sat, 21 Nov 2026 00:01:00 GMT', new Date('2026-11-21T00:00:00Z'))).toBe(60)
  expect(readRetryAfter('soon', new Date())).toBeUndefined()
})

test.each([
  ['an HTML page of a proxy', { status: 200, text: '<html>' }],
  ['an empty object', { status: 200, body: {} }],
  ['valid: "true" as text', { status: 200, body: verification({ valid: 'true' }) }],
  [
    'a payment to be settled without a settlement token',
    { status: 200, body: verification({ settlementToken: null }) },
  ],
  ['no body', { status: 200 }],
])('%s with status 200 is never taken for a verification', async (_name, doing) => {
  fake.script('/verify', doing)
  expect(await failure(client({ maxRetries: 0 }).payments.verify(toVerify))).toMatchObject({
    code: 'unreadable-answer',
  })
})

test('a redirect is not followed, so the key goes to no other host', async () => {
  const elsewhere = await startFakePurser()
  fake.script('/account', { status: 307, headers: { location: `${elsewhere.baseUrl}/account` } })
  expect(await failure(client().account.get())).toBeInstanceOf(UnavailableError)
  expect(elsewhere.seen).toHaveLength(0)
  await elsewhere.stop()
})

test('a list is read page by page with for await, always from the configured host, and only as far as needed', async () => {
  const link = (cursor: string) => ({ link: `<http://evil.test/wallets?limit=2&cursor=${cursor}>; rel="next"` })
  fake.script('limit=2', { status: 200, body: [{ id: 'a' }, { id: 'b' }], headers: link('two') })
  fake.script('cursor=two', { status: 200, body: [{ id: 'c' }], headers: link('three') })
  fake.script('cursor=three', { status: 200, body: [{ id: 'd' }] })
  const list = client().wallets.byo.list({ limit: 2 })

  const ids: string[] = []
  for await (const { id } of list) ids.push(id)
  expect(ids).toEqual(['a', 'b', 'c', 'd'])
  expect(fake.seen.map(({ path }) => path)).toEqual([
    '/wallet-infra/byo-wallets?limit=2',
    '/wallet-infra/byo-wallets?limit=2&cursor=two',
    '/wallet-infra/byo-wallets?limit=2&cursor=three',
  ])
  expect(await list.toArray({ limit: 2 })).toHaveLength(2)
  expect(fake.seen).toHaveLength(4)
  expect((await list.page()).cursor).toBe('two')
})

test('only a link whose relation is next leads on', () => {
  expect(nextCursor(null)).toBeUndefined()
  expect(nextCursor('</a?cursor=x>; rel="prev"')).toBeUndefined()
  expect(nextCursor('</a?cursor=x>; rel="prev", </a?cursor=y>; rel="next"')).toBe('y')
  expect(nextCursor('</a?cursor=y>; rel=next')).toBe('y')
  expect(nextCursor('</a?cursor=y>; title="x"; rel="last next"')).toBe('y')
})

test('an id in a path is escaped and can not lead to another operation', async () => {
  fake.script('', { status: 200, body: {} })
  await client().wallets.byo.get('../organisations?x=1')
  expect(fake.seen[0]?.path).toBe('/wallet-infra/byo-wallets/..%2Forganisations%3Fx%3D1')
  expect(() => client().wallets.byo.get('..')).toThrow(TypeError)
})

test('settling distinguishes a final settlement from a pending one', async () => {
  fake.script('/settle', { status: 202, body: { status: 'settling', txHash: null } }, { status: 200, body: {} })
  const request = { paymentId: 'pay_01', settlementToken: 't' }
  expect(await client().payments.settle(request)).toEqual({ status: 'settling', txHash: null })
  expect(await failure(client({ maxRetries: 0 }).payments.settle(request))).toMatchObject({ code: 'unreadable-answer' })
})

test('a key with a line break is refused when the client is made, and neither error nor client shows it', async () => {
  const secret = 'svc_live_sk_secret\n'
  const make = () => createPurser({ apiKey: secret, baseUrl: fake.baseUrl })
  expect(make).toThrow(/white space/)
  expect(make).toThrow(/^apiKey is "svc_…"\./)
  expect(make).not.toThrow(secret.slice(secret.lastIndexOf('_') + 1).trim())
  fake.script('/account', problem(401, 'unauthorized'))
  const error = await failure(client().account.get())
  expect(`${error.stack}${JSON.stringify(error)}${JSON.stringify(client())}`).not.toContain(apiKey)
})

test('any list can be read by its path, over all its pages', async () => {
  fake.script('/new-things?a=1', { status: 200, body: [1], headers: { link: '</x?cursor=c2>; rel="next"' } })
  fake.script('/new-things?a=1&cursor=c2', { status: 200, body: [2] })
  const list = client().list('/new-things', { query: { a: 1 } })
  expect(await list.page()).toEqual({ items: [1], cursor: 'c2' })
  expect(await list.toArray({ limit: 10 })).toEqual([1, 2])
})

test('a filter by metadata is one parameter with the name of the member', async () => {
  const list = client().transfers.list({ status: 'failed', metadata: { 'order id': '4&2' } })
  fake.script('/wallet-infra/transfers?status=failed&metadata.order+id=4%262', { status: 200, body: [] })
  expect(await list.page()).toEqual({ items: [], cursor: undefined })
})

test('a list is read as CSV over all its pages, as the parts of one file, and an answer that is no CSV is an error', async () => {
  const csv = { 'content-type': 'text/csv; charset=utf-8; header=present' }
  const link = '</logs?a=1&cursor=c2>; rel="next"'
  fake.script('/logs?a=1', problem(503, 'service-unavailable'), {
    status: 200,
    text: 'id,note\r\n1,"a\r\nb"\r\n',
    headers: { ...csv, link },
  })
  fake.script('/logs?a=1&cursor=c2', { status: 200, text: 'id,note\r\n2,\r\n', headers: csv })
  const parts: string[] = []
  for await (const part of client().csv('/logs', { query: { a: 1 } })) parts.push(part)
  expect(parts).toEqual(['id,note\r\n1,"a\r\nb"\r\n', '2,\r\n'])
  expect(fake.seen.map(({ headers }) => headers.accept)).toEqual(['text/csv', 'text/csv', 'text/csv'])

  fake.script('/things', { status: 200, body: [] })
  expect(await failure(client().csv('/things').next())).toMatchObject({ code: 'unreadable-answer', status: 200 })
})

test('any operation can be called by method and path', async () => {
  fake.script('/new-thing?a=1', { status: 201, body: { made: true } })
  const made = await client().request('POST', '/new-thing', { query: { a: 1, b: undefined }, body: { x: 1 } })
  expect(made).toEqual({ made: true })
  expect(fake.seen[0]).toMatchObject({ method: 'POST', body: { x: 1 } })
})

test('the key goes over plain HTTP to this machine only, and elsewhere if that is allowed', async () => {
  const sent: string[] = []
  const record: typeof fetch = async (input) => {
    sent.push(String(input))
    return Response.json({})
  }
  const elsewhere = { baseUrl: 'http://purser.internal:4200', allowInsecure: true }
  const onThisMachine = ['http://localhost:4200', 'http://api.localhost:4200', 'http://[::1]:4200']
  for (const options of [elsewhere, ...onThisMachine.map((baseUrl) => ({ baseUrl }))])
    await createPurser({ apiKey, fetch: record, ...options }).request('GET', '/account')
  expect(sent).toEqual(['http://purser.internal:4200/account', ...onThisMachine.map((baseUrl) => `${baseUrl}/account`)])
})

test('a path without its slash, which would name another host, is refused', async () => {
  const purser = client({ fetch: () => Promise.reject(new Error('it was sent')) })
  for (const path of ['.evil.example/account', '@evil.example/account', ':81/account', 'account'] as never[]) {
    await expect(async () => purser.request('GET', path)).rejects.toThrow(/^The path is .* Begin it with a slash/)
    await expect(async () => purser.list(path).page()).rejects.toThrow(/^The path is/)
  }
})
