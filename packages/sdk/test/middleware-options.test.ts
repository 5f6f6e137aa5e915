import { describe, expect, test, vi } from 'vitest'
import { AuthenticationError, ValidationError } from '../src/errors.ts'
import { printFault } from '../src/middleware/faults.ts'
import { problem } from './fake-purser.ts'
import { frameworks, header, misconfigurations, stageOf, v2 } from './stage.ts'

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  test.each([{}, v2()])('OPTIONS costs nothing and never reaches the handler, with headers %j', async (headers) => {
    const response = await fetch(`${at.shop.url}/paid`, { method: 'OPTIONS', headers })
    expect([response.status, await response.text()]).toEqual([204, ''])
    expect(at.fake.seen).toHaveLength(0)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('with CORS options a preflight is answered, and scripts of those origins read every answer', async () => {
    await at.open({ pay: { cors: { origins: ['https://app.test'] } } })
    const ask = (origin: string, method: string, headers = {}) =>
      fetch(`${at.shop.url}/paid`, { method, headers: { origin, 'access-control-request-method': 'GET', ...headers } })
    const preflight = await ask('https://app.test', 'OPTIONS', { 'access-control-request-headers': 'x-mine' })
    expect(header(preflight, 'access-control-allow-origin')).toBe('https://app.test')
    expect(header(preflight, 'access-control-allow-headers')).toMatch(/PAYMENT-SIGNATURE.*x-mine/)
    expect(header(preflight, 'access-control-allow-methods')).toContain('GET')
    const answers = [await ask('https://app.test', 'GET'), await ask('https://app.test', 'GET', v2())]
    expect(answers.map((answer) => [answer.status, header(answer, 'access-control-allow-origin')])).toEqual([
      [402, 'https://app.test'],
      [200, 'https://app.test'],
    ])
    const stranger = await ask('https://other.test', 'OPTIONS')
    expect(stranger.headers.has('access-control-allow-origin')).toBe(false)
  })

  test.each(misconfigurations)('%s is 500 and no outage, and the provider reads why', async (_what, doing) => {
    at.fake.script('/challenge', doing)
    at.fake.script('/verify', doing)
    for (const response of [await at.buy({}), await at.buy(v2())]) {
      const { status, body } = { status: response.status, body: await response.text() }
      expect([status, JSON.parse(body).code]).toEqual([500, 'payments-misconfigured'])
      expect(body).not.toMatch(/inside|req_fake|purser|cannot be verified/i)
    }
    expect(at.shop.runs).toHaveLength(0)
    expect(at.shop.faults).toMatchObject([{ stage: 'challenge' }, { stage: 'verify' }])
  })

  test('HEAD is sold like GET: unpaid it gets a 402 and runs nothing, paid it is settled', async () => {
    const unpaid = await fetch(`${at.shop.url}/paid`, { method: 'HEAD' })
    expect(unpaid.status).toBe(402)
    expect(header(unpaid, 'payment-required')).not.toBe('')
    expect(at.shop.runs).toHaveLength(0)

    const paid = await fetch(`${at.shop.url}/paid`, { method: 'HEAD', headers: v2() })
    expect(paid.status).toBe(200)
    expect(header(paid, 'payment-response')).not.toBe('')
    expect(at.shop.runs).toHaveLength(1)
    expect(at.fake.calls('/settle')).toHaveLength(1)
  })

  test('a provider may give HEAD away', async () => {
    await at.open({ pay: { freeMethods: ['HEAD'] } })
    expect((await fetch(`${at.shop.url}/paid`, { method: 'HEAD' })).status).toBe(200)
    expect((await fetch(`${at.shop.url}/paid`, { method: 'OPTIONS' })).status).toBe(204)
    expect(at.shop.runs).toEqual([undefined])
  })

  test('the price may depend on the request, for the challenge and for the verification alike', async () => {
    await at.buy({}, '/paid?price=2.50')
    await at.buy(v2(), '/paid?price=2.50')
    expect(at.fake.calls('/challenge')[0]?.body.price).toBe('2.50')
    expect(at.fake.calls('/verify')[0]?.body.price).toBe('2.50')
  })

  test('behind a proxy the resource is named as payers know it, whatever Host the caller sends', async () => {
    await at.open({ wallet: { publicUrl: 'https://api.example.com/v1/' } })
    await at.buy({}, '/paid?q=1')
    expect(at.fake.calls('/challenge')[0]?.body.resource).toBe('https://api.example.com/v1/paid?q=1')
  })

  test('a URL longer than Purser accepts is 400, without a request to Purser', async () => {
    expect((await at.buy(v2(), `/paid?q=${'x'.repeat(2_100)}`)).status).toBe(400)
    expect(at.fake.seen).toHaveLength(0)
    expect(at.shop.faults).toHaveLength(0)
  })

  test('a challenge without an x402 offer is no way to pay: 503', async () => {
    at.fake.script('/challenge', {
      status: 200,
      body: { x402: null, x402V1: null, mpp: null, expiresAt: '2026-11-21T00:00:00.000Z' },
    })
    expect((await at.buy({})).status).toBe(503)
  })

  test('challenges fetched ahead are each shown once', async () => {
    await at.open({ wallet: { challengeBatch: 3 } })
    const shown = new Set<string>()
    for (let payers = 0; payers < 7; payers++) shown.add(header(await at.buy({}), 'www-authenticate'))
    expect(shown.size).toBe(7)
    expect(at.fake.calls('/challenge').map(({ body }) => body.count)).toEqual([3, 3, 3])
    await at.buy({}, '/paid?price=9')
    expect(at.fake.calls('/challenge')).toHaveLength(4)
  })

  test("a caller limited by Purser reads 429 with Retry-After; the provider's own limit stays inside as 503", async () => {
    at.fake.script('/challenge', problem(429, 'rate-limit-exceeded', {}, { 'retry-after': '30' }))
    expect((await at.buy({})).status).toBe(503)
    await at.open({ pay: { clientIp: () => '203.0.113.7' } })
    const limited = await at.buy({})
    expect(limited.status).toBe(429)
    expect(header(limited, 'retry-after')).toBe('30')
    expect(at.fake.calls('/challenge').at(-1)?.body.ip).toBe('203.0.113.7')
  })
})

test.each([
  [new AuthenticationError('No.', { status: 401, code: 'unauthorized' }), /AuthenticationError: No\. Check apiKey/],
  [new ValidationError('No.', { status: 422, code: 'wallet-not-found' }), /ValidationError: No\. Check walletId/],
  [new ValidationError('No.', { status: 422, code: 'amount-below-minimum' }), /ValidationError: No\. Raise the price/],
])('the log line of a permanent fault says what the provider changes', (error, line) => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => {})
  printFault({ stage: 'challenge', error })
  expect(print.mock.calls).toEqual([[expect.stringMatching(line)]])
  print.mockRestore()
})
