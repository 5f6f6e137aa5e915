import { describe, expect, test } from 'vitest'
import * as onExpress from '../src/middleware/express.ts'
import * as onFastify from '../src/middleware/fastify.ts'
import * as onHono from '../src/middleware/hono.ts'
import * as onNext from '../src/middleware/next.ts'
import { problem } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, mpp, silences, stageOf, v2 } from './stage.ts'

const unknown = `sess_01h455vb4pex5vsknk084sn02q.${'z'.repeat(43)}`

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)
  const openWithSessions = (wallet: object = {}) =>
    at.open({ wallet: { acceptSessions: true, sessionTtl: '2h', ...wallet } })
  const withSession = (token: string) => ({ 'X-Service-Session-Id': token })
  const paidSession = async (headers: Record<string, string> = v2()) => {
    const sold = await at.buy(headers)
    expect([sold.status, await sold.json()]).toEqual([200, goods])
    return header(sold, 'x-service-session-id')
  }

  test('one payment covers three calls: the answer that was paid for carries a session, and the others come with it', async () => {
    await openWithSessions()
    const token = await paidSession()
    expect(token).toMatch(/^sess_[0-9a-z]{26}\.[A-Za-z0-9_-]{43}$/)
    for (const _call of [2, 3]) {
      const response = await at.buy(withSession(token))
      expect([response.status, await response.json()]).toEqual([200, goods])
      expect(header(response, 'cache-control')).toBe('max-age=60, private')
      expect(response.headers.has('payment-response')).toBe(false)
      expect(response.headers.has('x-service-session-id')).toBe(false)
    }
    expect(at.fake.calls('/payments/verify')).toHaveLength(1)
    expect(at.fake.calls('/settle')).toHaveLength(1)
    expect(at.fake.calls('/sessions').map(({ body }) => body)).toEqual([{ paymentId: 'pay_01', expiresIn: 7_200 }])
    const { host } = new URL(at.shop.url)
    expect(at.fake.calls('/sessions/verify').map(({ body }) => body)).toEqual([
      { sessionToken: token, host, walletId: 'byw_1' },
    ])
    expect(at.shop.runs.map((run) => run?.paymentId)).toEqual(['pay_01', undefined, undefined])
    expect(at.shop.sessions.map((session) => session?.sessionId)).toEqual([
      undefined,
      token.split('.')[0],
      token.split('.')[0],
    ])
    expect(at.shop.faults).toEqual([])
  })

  test('a payment by MPP buys a session too', async () => {
    await openWithSessions()
    const token = await paidSession({ Authorization: mpp() })
    expect((await at.buy(withSession(token))).status).toBe(200)
  })

  test('the challenge of a route that accepts sessions asks for one', async () => {
    await openWithSessions()
    expect((await at.buy({})).status).toBe(402)
    expect(at.fake.calls('/challenge')[0]?.body).toMatchObject({ intent: 'session' })
  })

  test('an expired session gets a 402 with a fresh challenge, and nothing runs', async () => {
    await openWithSessions()
    for (const answer of [problem(402, 'session-not-found'), { status: 200, body: overSession() }]) {
      at.fake.script('/sessions/verify', answer)
      const response = await at.buy(withSession(unknown))
      expect(response.status).toBe(402)
      expect(header(response, 'payment-required')).not.toBe('')
    }
    expect(at.shop.runs).toHaveLength(0)
    expect(at.shop.faults).toEqual([])
  })

  test.each([
    ['an id without its secret', 'sess_01h455vb4pex5vsknk084sn02q'],
    ['two sessions in one header', `${unknown}, ${unknown}`],
    ['a text that is none', 'let me in'],
    ['a very long text', `sess_${'a'.repeat(8_000)}`],
  ])('%s gets a 402, without a session check at Purser', async (_what, value) => {
    await openWithSessions()
    expect((await at.buy(withSession(value))).status).toBe(402)
    expect(at.fake.calls('/sessions/verify')).toHaveLength(0)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a route that does not accept sessions gives none, and lets none in', async () => {
    const sold = await at.buy(v2())
    expect([sold.status, sold.headers.has('x-service-session-id')]).toEqual([200, false])
    expect((await at.buy(withSession(unknown))).status).toBe(402)
    expect(at.fake.seen.filter(({ path }) => path.startsWith('/sessions'))).toEqual([])
    expect(at.fake.calls('/challenge')[0]?.body).not.toHaveProperty('intent')
  })

  test('a payment beside a session is taken, and buys a new session', async () => {
    await openWithSessions()
    const token = await paidSession()
    const again = await at.buy({ ...v2(), ...withSession(token) })
    expect(header(again, 'x-service-session-id')).not.toBe(token)
    expect([at.fake.calls('/settle').length, at.fake.calls('/sessions/verify').length]).toEqual([2, 0])
  })

  test.each(silences.filter(([what]) => what !== 'valid: false with status 200'))(
    'when a session check meets %s, the route fails closed with 503, and nothing runs',
    async (_what, doing) => {
      await openWithSessions(doing === 'hang' ? { timeoutMs: 1_000, maxRetries: 0 } : {})
      at.fake.script('/sessions/verify', doing)
      const response = await at.buy(withSession(unknown))
      expect(response.status).toBe(503)
      const text = await response.text()
      expect(JSON.parse(text)).toMatchObject({ code: 'payments-unavailable' })
      expect(text).not.toMatch(/inside|127\.0\.0\.1|req_fake|purser|sess_/i)
      expect(at.shop.runs).toHaveLength(0)
      expect(at.shop.faults).toMatchObject([{ stage: 'session' }])
    },
  )

  test.each(silences)(
    'when opening the session meets %s, the response is sent without one, and the fault is reported',
    async (_what, doing) => {
      await openWithSessions(doing === 'hang' ? { timeoutMs: 1_000, maxRetries: 0 } : {})
      at.fake.script('/sessions', doing)
      const response = await at.buy(v2())
      expect([response.status, await response.json()]).toEqual([200, goods])
      expect(response.headers.has('x-service-session-id')).toBe(false)
      expect(header(response, 'payment-response')).not.toBe('')
      expect(at.shop.faults).toMatchObject([{ stage: 'session', payment: { paymentId: 'pay_01' } }])
    },
  )

  test('a payment that is not settled opens no session', async () => {
    await openWithSessions()
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    const response = await at.buy(v2())
    expect([response.status, response.headers.has('x-service-session-id')]).toEqual([402, false])
    expect(at.fake.calls('/sessions')).toHaveLength(0)
    await at.buy(v2(), '/fails')
    expect(at.fake.calls('/sessions')).toHaveLength(0)
  })

  test('a handler that fails within a session answers for itself, and the session stays good', async () => {
    await openWithSessions()
    const token = await paidSession()
    expect((await at.buy(withSession(token), '/fails')).status).toBe(422)
    expect((await at.buy(withSession(token), '/throws')).status).toBe(500)
    expect((await at.buy(withSession(token))).status).toBe(200)
  })

  test('the vault of a paid request is made when it is used, and every call on it goes to the vault of that payment', async () => {
    await at.buy(v2())
    expect(at.fake.calls('/sessions')).toHaveLength(0)
    const response = await at.buy(v2(), '/vault')
    expect([response.status, await response.json()]).toEqual([200, { vault: vaultId, documents: 0 }])
    expect(response.headers.has('x-service-session-id')).toBe(false)
    expect(at.fake.calls('/sessions').map(({ body }) => body)).toEqual([{ paymentId: 'pay_01' }])
    const written = at.fake.seen.filter(({ path }) => path.startsWith(`/vaults/${vaultId}`))
    expect(written.map(({ method, path, body }) => [method, path.slice(`/vaults/${vaultId}`.length), body])).toEqual([
      ['POST', '/documents', { name: 'Findings', data: { found: 7 } }],
      [
        'POST',
        '/files',
        { form: expect.stringContaining('filename="report.txt"\r\nContent-Type: text/plain\r\n\r\nthe report\r\n') },
      ],
      ['POST', '/emit', { event: 'progress', payload: { percent: 100 } }],
      ['POST', '/persist', {}],
      ['POST', '/seal', { summary: 'All done' }],
      ['GET', '', {}],
    ])
  })

  test('the calls of a session share one vault, and the payment that opened it has the same', async () => {
    await openWithSessions()
    const sold = await at.buy(v2(), '/vault')
    expect(await sold.json()).toMatchObject({ vault: vaultId })
    const token = header(sold, 'x-service-session-id')
    expect(at.fake.calls('/sessions')).toHaveLength(1)
    expect(await (await at.buy(withSession(token), '/vault')).json()).toMatchObject({ vault: vaultId })
    expect(at.fake.calls('/sessions')).toHaveLength(1)
  })

  test('a vault that cannot be made is a handler that fails: nothing is settled', async () => {
    at.fake.script(
      '/sessions',
      problem(429, 'vault-quota-exceeded', { limit: 3, current: 3, upgradeUrl: 'http://d.test' }),
    )
    expect((await at.buy(v2(), '/vault')).status).toBe(500)
    expect(at.fake.calls('/settle')).toHaveLength(0)
  })

  test('a request that is not paid for has no vault', async () => {
    await at.open({ pay: { freeMethods: ['PUT'] } })
    const response = await fetch(`${at.shop.url}/vault`, { method: 'PUT' })
    expect(await response.json()).toEqual({ vault: 'none' })
    expect(at.fake.seen).toEqual([])
  })
})

test.each([
  ['express', onExpress.payMiddleware],
  ['fastify', onFastify.payHook],
  ['hono', onHono.payMiddleware],
])('a session time that Purser would not take is thrown when the %s server starts', (_name, pay) => {
  expect(() => pay({ price: '0.01', acceptSessions: true, sessionTtl: '30d' })).toThrow(/sessionTtl/)
})

test('the same of all routes is thrown when the seller is opened', () => {
  const wallet = { apiKey: 'svc_test_sk_x', baseUrl: 'https://purser.test', walletId: 'byw_1' }
  expect(() => onExpress.walletMiddleware({ ...wallet, sessionTtl: 5 })).toThrow(/sessionTtl/)
})

test('only a request that is paid for has a vault to ask for', () => {
  expect(() => onNext.vaultOf(new Request('http://shop.test'))).toThrow(/paid request/)
})

const vaultId = 'vlt_01h455vb4pex5vsknk084sn02q'

function overSession() {
  const sessionId = unknown.split('.')[0]
  return { sessionId, vaultId, expiresAt: '2026-01-01T00:00:00.000Z', isExpired: true }
}
