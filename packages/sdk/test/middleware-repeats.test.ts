import { request as httpRequest } from 'node:http'
import { describe, expect, test, vi } from 'vitest'
import { encodeHeader } from '../src/middleware/headers.ts'
import { problem, txHash, verification } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, mpp, named, stageOf, v1, v2 } from './stage.ts'

const settledNow = { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:09.000Z', redemptionRequested: false } }
const requested = { ...settledNow, body: { ...settledNow.body, redemptionRequested: true } }
const duplicate = problem(409, 'duplicate-payment')
const unknown = problem(503, 'chain-unavailable')
const good = { status: 200, body: verification({ redeemable: true }) }
const bare = { status: 200, body: verification({ redeemable: false }) }
const granted = {
  status: 200,
  body: verification({ redeemable: true, settlementPending: false, txHash, redemptionToken: 'right', expiresIn: 60 }),
}

let serial = 0

function offered(): { 'PAYMENT-SIGNATURE': string } {
  const accepted = { network: 'eip155:84532', extra: { challengeId: 'an id of the offer' } }
  return { 'PAYMENT-SIGNATURE': encodeHeader({ x402Version: 2, accepted, payload: { nonce: `repeat ${++serial}` } }) }
}

const inProgress = { code: 'delivery-in-progress' }

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  /** Sends a request, and breaks its connection when Purser has received a call whose path ends so. */
  const leaveAt = async (end: string, headers: Record<string, string>) => {
    const before = at.fake.calls(end).length
    const request = httpRequest(`${at.shop.url}/paid`, { headers })
    request.on('error', () => {})
    request.end()
    await vi.waitFor(() => expect(at.fake.calls(end).length).toBe(before + 1))
    const closed = new Promise((resolve) => request.once('close', resolve))
    request.destroy()
    await closed
    // The shop has answered a later request, so that it knows that this client is gone.
    for (let later = 0; later < 3; later++) expect((await at.buy({})).status).toBe(402)
  }

  /** Breaks a connection between Purser's record that its answer leaves and the answer. */
  const leaveAfterRedeemed = async (headers: Record<string, string>) => {
    const recorded = Promise.withResolvers<void>()
    at.fake.script('/redeemed', { status: 200, body: {}, after: recorded.promise })
    await leaveAt('/redeemed', headers)
    recorded.resolve()
    await vi.waitFor(() => expect(at.fake.calls('/undelivered').length).toBeGreaterThan(0))
    at.fake.script('/redeemed', { status: 200, body: {} })
  }

  const servedOnce = async (credential: Record<string, string>) => {
    const served = await at.buy(credential)
    expect([served.status, await served.json()]).toEqual([200, goods])
    expect(at.fake.calls('/undelivered').map(({ body }) => body)).toContainEqual({ redemptionToken: 'right' })
    expect(at.shop.runs).toHaveLength(1)
    at.fake.script('/redeem', problem(409, 'payment-not-redeemable'))
    const again = await at.buy(credential)
    expect([again.status, await again.json()]).toMatchObject([409, { code: 'duplicate-payment' }])
    expect(at.shop.runs).toHaveLength(1)
  }

  test('a redemption that could not be returned is a fault of the delivery', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', unknown)
    at.fake.script('/undelivered', problem(422, 'invalid-request'))
    const credential = offered()
    expect((await at.buy(credential)).status).toBe(503)
    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted)
    await leaveAfterRedeemed(credential)
    const fault = { stage: 'delivery', error: { code: 'invalid-request' } }
    await vi.waitFor(() => expect(at.shop.faults.at(-1)).toMatchObject(fault))
  })

  test('if the payer disconnects after the delivery of a stored response was recorded, the next request gets that response', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', unknown)
    const credential = offered()
    expect((await at.buy(credential)).status).toBe(503)
    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted)
    await leaveAfterRedeemed(credential)
    await servedOnce(credential)
  })

  test('if the payer disconnects after the delivery was recorded, the next request gets the first response', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', requested)
    at.fake.script('/redeem', granted)
    const credential = offered()
    await leaveAfterRedeemed(credential)
    await servedOnce(credential)
  })

  test('if the payer disconnects after the delivery was recorded, the next request gets the first response, also after the handler ran again', async () => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', granted)
    const credential = offered()
    await leaveAfterRedeemed(credential)
    await servedOnce(credential)
  })

  test.each(['settled', 'made anew'])(
    'a response (%s) is stored when it is unknown whether its delivery was recorded',
    async (how) => {
      at.fake.script('/verify', ...(how === 'settled' ? [good, duplicate] : [duplicate]))
      at.fake.script('/settle', requested)
      at.fake.script('/redeem', granted)
      at.fake.script('/redeemed', 'reset')
      const credential = offered()
      expect((await at.buy(credential)).status).toBe(503)
      at.fake.script('/redeemed', { status: 200, body: {} })
      await servedOnce(credential)
    },
  )

  test('an answer whose right to leave has gone to another process is kept, until that one has served it', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', requested)
    at.fake.script('/redeem', granted)
    at.fake.script('/redeemed', problem(409, 'redemption-lost'))
    const credential = offered()
    const first = await at.buy(credential)
    expect([first.status, await first.json()]).toMatchObject([409, inProgress])
    at.fake.script('/redeemed', { status: 200, body: {} })
    expect(await (await at.buy(credential)).json()).toEqual(goods)
  })

  test.each([
    ['of version 2', v2()],
    ['of version 1', v1()],
    ['that has a name', named('a-name-of-the-payer')],
    ['of MPP', { Authorization: mpp() }],
  ])(
    'a payment %s that is sent again while its handler runs is in progress, and no other is requested',
    async (_, credential) => {
      const slow = Promise.withResolvers<void>()
      await at.open({ slow: slow.promise })
      at.fake.script('/verify', bare, duplicate)
      const send = (method = 'POST') => fetch(`${at.shop.url}/slow`, { method, headers: credential })
      const first = send()
      await vi.waitFor(() => expect(at.shop.runs).toHaveLength(1))
      for (const repeat of [await send(), await send()]) {
        expect([repeat.status, header(repeat, 'retry-after')]).toEqual([409, '5'])
        expect(await repeat.json()).toMatchObject(inProgress)
      }
      expect(at.fake.calls('/verify')).toHaveLength(1)
      slow.resolve()
      expect((await first).status).toBe(200)
      expect(at.shop.runs).toHaveLength(1)
    },
  )

  test.each([
    ['a payment of version 1', v1()],
    ['a payment without an id', v2()],
    ['an MPP payment', { Authorization: mpp('tempo') }],
  ])('%s whose handler runs in another process is in progress', async (_, credential) => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', problem(409, 'delivery-in-progress', {}, { 'retry-after': '5' }))
    const response = await fetch(`${at.shop.url}/paid`, { method: 'PUT', headers: credential })
    expect([response.status, header(response, 'retry-after')]).toEqual([409, '5'])
    expect(await response.json()).toMatchObject(inProgress)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a payer whose answer is gone is sent no challenge', async () => {
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', problem(409, 'answer-lost'))
    const response = await at.buy(offered())
    const { code, detail } = await response.json()
    expect([response.status, code, header(response, 'payment-required')]).toEqual([409, 'answer-lost', ''])
    expect(detail).toContain('Do not sign another payment')
  })

  test('what settled after its payer was refused, and shows nothing but what the chain shows, is called charged and lost', async () => {
    for (const credential of [v1(), v2()]) {
      at.fake.script('/verify', bare, duplicate)
      at.fake.script('/settle', unknown)
      expect((await at.buy(credential)).status).toBe(503)
      expect((await at.buy(credential)).status).toBe(503)
      at.fake.script('/settle', settledNow)
      const response = await at.buy(credential)
      expect([response.status, await response.json()]).toMatchObject([409, { code: 'answer-lost' }])
    }
  })

  test('a payment that sold nothing is not in progress afterwards: its payer needs a new one', async () => {
    at.fake.script('/verify', good, duplicate)
    const credential = offered()
    expect((await at.buy(credential, '/fails')).status).toBe(422)
    const again = await at.buy(credential, '/fails')
    expect([again.status, await again.json()]).toMatchObject([409, { code: 'duplicate-payment' }])
    expect(at.shop.runs).toHaveLength(1)
  })

  test('an answer to a payment that a signature alone redeems takes the right to leave once a redemption was requested', async () => {
    at.fake.script('/verify', bare)
    at.fake.script('/settle', requested)
    at.fake.script('/redeem', granted)
    const response = await at.buy(v2())
    expect([response.status, await response.json()]).toEqual([200, goods])
    const own = { paymentId: 'pay_01', settlementToken: 'settlement-token-secret', rerun: false }
    expect(at.fake.calls('/redeem').map(({ body }) => body)).toMatchObject([own])
    expect(at.fake.calls('/redeemed')).toHaveLength(1)

    at.fake.script('/redeem', problem(409, 'payment-not-redeemable'))
    expect((await at.buy(v2())).status).toBe(409)
  })

  test('an answer whose session took longer to open than it may leave by itself takes the right to leave', async () => {
    await at.open({ pay: { acceptSessions: true } })
    const opened = Promise.withResolvers<void>()
    const session = {
      sessionId: 'sess_1',
      sessionToken: 'sess_1.token',
      isExpired: false,
      vaultId: 'vlt_1',
      expiresAt: '2026-11-22T00:00:00.000Z',
    }
    at.fake.script('/verify', good)
    at.fake.script('/settle', settledNow)
    at.fake.script('/sessions', { status: 201, body: session, after: opened.promise })
    at.fake.script('/redeem', granted)
    const buying = at.buy(offered())
    await vi.waitFor(() => expect(at.fake.calls('/sessions')).toHaveLength(1))
    const late = performance.now() + 21_000
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => late)
    try {
      opened.resolve()
      const response = await buying
      expect([response.status, header(response, 'x-service-session-id')]).toEqual([200, 'sess_1.token'])
    } finally {
      clock.mockRestore()
    }
    expect(at.fake.calls('/redeemed')).toHaveLength(1)
  })

  test('a kept answer is not redeemed as if it were still its first connection', async () => {
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', unknown)
    const credential = offered()
    await at.buy(credential)
    at.fake.script('/settle', settledNow)
    at.fake.script('/redeem', granted)
    expect((await at.buy(credential)).status).toBe(200)
    expect(at.fake.calls('/redeem').every(({ body }) => body.paymentId === undefined)).toBe(true)
  })
})
