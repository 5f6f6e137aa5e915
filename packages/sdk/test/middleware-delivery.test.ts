import { request as httpRequest } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { encodeHeader } from '../src/middleware/headers.ts'
import { payer, problem, txHash, verification } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, mpp, stageOf, v1, v2 } from './stage.ts'

const settledNow = { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:09.000Z', redemptionRequested: false } }
const duplicate = problem(409, 'duplicate-payment')
const inProgress = problem(409, 'delivery-in-progress', {}, { 'retry-after': '30' })
const good = { status: 200, body: verification({ redeemable: true }) }
const granted = {
  status: 200,
  body: verification({ redeemable: true, settlementPending: false, txHash, redemptionToken: 'right', expiresIn: 60 }),
}

let serial = 0

/** A payment of version 2 for an offer that has an id. */
function offered(from?: string): { 'PAYMENT-SIGNATURE': string } {
  const accepted = { network: 'eip155:84532', extra: { challengeId: 'an id of the offer' } }
  const payload = { nonce: --serial, ...(from !== undefined && { authorization: { from } }) }
  return { 'PAYMENT-SIGNATURE': encodeHeader({ x402Version: 2, accepted, payload }) }
}

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  /** Sends a request and breaks the connection once the handler runs. */
  const leave = async (method: string, headers: Record<string, string>) => {
    const runsBefore = at.shop.runs.length
    const request = httpRequest(`${at.shop.url}/slow`, { method, headers })
    request.on('error', () => {})
    request.end()
    await vi.waitFor(() => expect(at.shop.runs.length).toBe(runsBefore + 1))
    const closed = new Promise((resolve) => request.once('close', resolve))
    request.destroy()
    await closed
  }

  test('an answer that was withheld is served once when its payment is settled', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    const credential = offered()
    const first = await at.buy(credential)
    expect([first.status, header(first, 'retry-after')]).toEqual([503, '5'])
    expect((await at.buy(credential)).status).toBe(503)

    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted)
    const served = await at.buy(credential)
    expect([served.status, await served.json()]).toEqual([200, goods])
    expect(header(served, 'payment-response')).not.toBe('')
    expect(header(served, 'cache-control')).toBe('max-age=60, private')
    const targeted = ['cdn-cache-control', 'surrogate-control', 'x-accel-expires']
    expect(targeted.map((name) => header(served, name))).toEqual(targeted.map(() => header(served, 'no-such-header')))
    expect(header(served, 'x-leak')).toBe('goods')
    expect(at.fake.calls('/redeem').at(-1)?.body).toMatchObject({ rerun: false, settlementToken: expect.any(String) })
    expect(at.fake.calls('/redeemed').map(({ body }) => body)).toEqual([{ redemptionToken: 'right' }])
    expect(at.shop.runs).toHaveLength(1)

    at.fake.script('/redeem', problem(409, 'payment-not-redeemable'))
    expect((await at.buy(credential)).status).toBe(409)
    expect(at.shop.runs).toHaveLength(1)
  })

  test('of two requests at once for a withheld answer one is served', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    const credential = offered()
    await at.buy(credential)
    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted, problem(409, 'payment-not-redeemable'))
    const answers = await Promise.all([1, 2, 3].map(() => at.buy(credential)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  })

  test('a withheld answer is dropped when settling failed, and not served to a reader of the chain', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    const credential = offered()
    await at.buy(credential)
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    expect((await at.buy(credential)).status).toBe(402)
    at.fake.script('/settle', settledNow)
    expect((await at.buy(credential)).status).toBe(409)

    for (const bare of [v1(), v2()]) {
      at.fake.script('/verify', { status: 200, body: verification({ redeemable: false }) }, duplicate)
      at.fake.script('/settle', problem(503, 'chain-unavailable'))
      await at.buy(bare)
      at.fake.script('/settle', settledNow)
      expect((await at.buy(bare)).status).toBe(409)
    }
  })

  test('a response that another process may be serving is kept, and the payer gets a Retry-After', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', { ...settledNow, body: { ...settledNow.body, redemptionRequested: true } })
    at.fake.script('/redeem', inProgress)
    const credential = offered()
    for (const response of [await at.buy(credential), await at.buy(credential)]) {
      expect([response.status, header(response, 'retry-after')]).toEqual([409, '30'])
      expect(await response.json()).toMatchObject({ code: 'delivery-in-progress' })
    }
    at.fake.script('/redeem', granted)
    expect(await (await at.buy(credential)).json()).toEqual(goods)
  })

  test('without a kept answer the handler runs again for a payment that was never delivered', async () => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', granted)
    const response = await at.buy(offered())
    expect([response.status, await response.json()]).toEqual([200, goods])
    expect(header(response, 'payment-response')).not.toBe('')
    expect(at.fake.calls('/redeem')[0]?.body).toMatchObject({ method: 'GET', resource: `${at.shop.url}/paid` })
    expect(at.fake.calls('/settle')).toHaveLength(0)
    expect(at.fake.calls('/redeemed')).toHaveLength(1)
    at.fake.script('/redeemed', problem(409, 'redemption-lost'))
    const lost = await at.buy(offered())
    expect([lost.status, lost.headers.has('x-leak')]).toEqual([409, false])
  })

  test('the handler does not run again for a request that costs more than was paid', async () => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', granted)
    const response = await at.buy(offered(), '/paid?price=0.02')
    expect([response.status, await response.json()]).toEqual([409, expect.objectContaining({ code: 'answer-lost' })])
    expect(at.shop.runs).toHaveLength(0)
    await vi.waitFor(() => expect(at.fake.calls('/undelivered')).toHaveLength(1))
    expect(at.shop.faults).toMatchObject([{ stage: 'delivery', payment: { paymentId: 'pay_01' } }])
  })

  test('a fresh signature of the payer goes with the request to redeem', async () => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', granted)
    const signedAt = '2026-11-23T04:00:00.000Z'
    const value = `0x${'ab'.repeat(65)}`
    const response = await at.buy({ ...v2(), 'X-Service-Redemption': `${signedAt} ${value}` })
    expect(response.status).toBe(200)
    expect(at.fake.calls('/redeem')[0]?.body).toMatchObject({ signature: { signedAt, value } })
  })

  test('a client that leaves before a safe handler has ended is not charged', async () => {
    const slow = Promise.withResolvers<void>()
    await at.open({ slow: slow.promise })
    at.fake.script('/verify', good)
    await leave('GET', offered())
    slow.resolve()
    // The shop has answered another request since, so that the first one is over.
    await at.buy(offered())
    expect(at.fake.calls('/settle')).toHaveLength(1)
    await vi.waitFor(() => expect(at.fake.released).toHaveLength(1))
    expect(at.fake.delivered.length).toBeLessThan(2)
  })

  test('a client that leaves before an unsafe handler has ended is charged, and served once with the same credential', async () => {
    const slow = Promise.withResolvers<void>()
    const undelivered: unknown[] = []
    await at.open({ slow: slow.promise, wallet: { onUndelivered: (event) => void undelivered.push(event) } })
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/redeem', granted)
    const credential = offered()
    await leave('POST', credential)
    slow.resolve()
    await vi.waitFor(() => expect(undelivered).toMatchObject([{ isKept: true, payment: { paymentId: 'pay_01' } }]))
    expect(at.fake.calls('/settle')).toHaveLength(1)
    expect(at.fake.delivered).toEqual([])
    const served = await fetch(`${at.shop.url}/slow`, { method: 'POST', headers: credential })
    expect([served.status, await served.json()]).toEqual([200, goods])
    expect(at.shop.runs).toHaveLength(1)
  })

  test('a payer who abandons run after run is stopped before the next payment is recorded, and no other payer is', async () => {
    const slow = Promise.withResolvers<void>()
    await at.open({ slow: slow.promise, wallet: { abandonedRunsMax: 2 } })
    at.fake.script('/verify', good)
    for (let runs = 0; runs < 2; runs++) await leave('GET', offered(payer))
    slow.resolve()
    await vi.waitFor(async () => expect((await at.buy(offered(payer), '/slow')).status).toBe(429))
    const verified = at.fake.calls('/verify').length
    const refused = await at.buy(offered(payer.toUpperCase().replace('X', 'x')), '/slow')
    expect([refused.status, header(refused, 'retry-after')]).toEqual([429, '60'])
    expect(at.fake.calls('/verify')).toHaveLength(verified)
    expect((await at.buy(offered(`0x${'22'.repeat(20)}`), '/slow')).status).toBe(200)
    expect(at.shop.faults).toEqual([])
  })

  test.each([
    [
      'version 1',
      () => ({
        'X-PAYMENT': encodeHeader({ x402Version: 1, payload: { authorization: { from: payer }, n: --serial } }),
      }),
    ],
    ['MPP', () => ({ Authorization: mpp('evm', {}, { type: 'authorization', from: payer }) })],
  ] as const)('runs that a payer abandons are counted over protocols: %s', async (_, pay) => {
    const slow = Promise.withResolvers<void>()
    await at.open({ slow: slow.promise, wallet: { abandonedRunsMax: 2 } })
    at.fake.script('/verify', good)
    await leave('GET', pay())
    await leave('GET', offered(payer))
    slow.resolve()
    for (const credential of [pay(), offered(payer)])
      await vi.waitFor(async () => expect((await at.buy({ ...credential }, '/slow')).status).toBe(429))
  })

  test('runs whose payments cannot be settled are counted: nothing is charged for them', async () => {
    await at.open({ wallet: { abandonedRunsMax: 2 } })
    at.fake.script('/verify', good)
    at.fake.script('/settle', problem(409, 'settlement-failed', { reason: 'authorization-expired' }))
    const statuses: number[] = []
    for (let run = 0; run < 3; run++) statuses.push((await at.buy(offered(payer))).status)
    expect(statuses).toEqual([402, 402, 429])
    expect(at.shop.runs).toHaveLength(2)
  })

  test.each([
    ['that verifying has moved', { settlementPending: false, txHash, settledAt: '2026-11-21T00:00:02.000Z' }],
    ['that verifying has sent', { settlementPending: true, txHash }],
  ])('money %s is never refused for runs that its payer has abandoned', async (_, moved) => {
    const slow = Promise.withResolvers<void>()
    await at.open({ slow: slow.promise, wallet: { abandonedRunsMax: 1 } })
    at.fake.script('/verify', good)
    await leave('GET', offered(payer))
    slow.resolve()
    await vi.waitFor(async () => expect((await at.buy(offered(payer))).status).toBe(429))
    at.fake.script('/verify', { status: 200, body: verification({ protocol: 'mpp', method: 'tempo', ...moved }) })
    at.fake.script('/settle', settledNow)
    for (const payload of [
      { type: 'hash', from: payer },
      { type: 'transaction', from: payer },
    ]) {
      const response = await at.buy({ Authorization: mpp('tempo', {}, payload) })
      expect([response.status, await response.json()]).toEqual([200, goods])
    }
  })

  test('a client that leaves when its money was sent already is served by its next request', async () => {
    const slow = Promise.withResolvers<void>()
    const undelivered: unknown[] = []
    await at.open({ slow: slow.promise, wallet: { onUndelivered: (event) => void undelivered.push(event) } })
    const sent = verification({ protocol: 'mpp', method: 'tempo', settlementPending: true, txHash, redeemable: true })
    at.fake.script('/verify', { status: 200, body: sent }, duplicate)
    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted)
    const credential = { Authorization: mpp('tempo', {}, { type: 'transaction' }) }
    await leave('GET', credential)
    slow.resolve()
    await vi.waitFor(() => expect(undelivered).toMatchObject([{ isKept: true }]))
    expect(await (await at.buy(credential, '/slow')).json()).toEqual(goods)
    expect(at.shop.runs).toHaveLength(1)
  })

  test('what was delivered is reported', async () => {
    at.fake.script('/verify', good)
    await at.buy(offered())
    await vi.waitFor(() => expect(at.fake.delivered).toEqual(['pay_01']))
  })

  test.each(['*', undefined])(
    'a request on the condition %s is sold, since a 304 shows a digest of the goods',
    async (condition) => {
      const tag = condition ?? header(await at.buy(v2()), 'etag')
      const before = at.fake.calls('/settle').length
      const conditional = { 'if-none-match': tag === '' ? '"any"' : tag, 'cache-control': 'max-age=0' }
      const sold = await at.buy({ ...v2(), ...conditional, 'if-match': '"other"' })
      expect([sold.status, sold.headers.has('payment-response')]).toEqual([200, true])
      expect(await sold.json()).toEqual(goods)
      expect(at.fake.calls('/settle')).toHaveLength(before + 1)
    },
  )

  test.each([
    ['/unchanged', 304],
    ['/moved', 303],
  ])('an answer at %s of status %d sells nothing and is not charged', async (path, status) => {
    const response = await fetch(at.shop.url + path, { headers: v2(), redirect: 'manual' })
    expect(response.status).toBe(status)
    expect(at.shop.runs).toHaveLength(1)
    expect(at.fake.calls('/settle')).toHaveLength(0)
    expect(response.headers.has('payment-response')).toBe(false)
    await vi.waitFor(() => expect(at.fake.released).toHaveLength(1))
    expect(at.fake.released).toEqual([
      { path: '/payments/pay_01/release', body: { settlementToken: 'settlement-token-secret' } },
    ])
  })
})
