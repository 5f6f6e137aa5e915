import { decodePaymentResponseHeader } from '@x402/core/http'
import { describe, expect, test, vi } from 'vitest'
import { encodeHeader } from '../src/middleware/headers.ts'
import { payer, problem, txHash } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, silences, stageOf, v2 } from './stage.ts'

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  const expectNotSold = async (response: Response) => {
    expect(await response.text()).not.toContain(goods.secret)
    expect(response.headers.has('x-leak')).toBe(false)
  }

  test.each([
    ['/fails', 422, '{"error":"no such city"}'],
    ['/throws', 500, 'broke'],
    ['/nowhere', 404, ''],
  ])(
    'a handler that fails at %s is not paid: its answer leaves as it is and nothing is settled',
    async (path, status, text) => {
      const response = await at.buy(v2(), path)
      expect(response.status).toBe(status)
      expect(await response.text()).toContain(text)
      expect(response.headers.has('payment-response')).toBe(false)
      expect(at.fake.calls('/verify')).toHaveLength(1)
      expect(at.fake.calls('/settle')).toHaveLength(0)
    },
  )

  test.each([
    ['settlement-failed', {}, 'settlement_failed'],
    ['payment-voided', {}, 'payment_voided'],
    ['settlement-failed', { reason: 'insufficient_funds' }, 'insufficient_funds'],
  ])('when settling answers %s %j the goods stay, and the payer reads why', async (code, members, errorReason) => {
    at.fake.script('/settle', problem(409, code, members))
    const response = await at.buy(v2())
    expect(response.status).toBe(402)
    expect(decodePaymentResponseHeader(header(response, 'payment-response'))).toEqual({
      success: false,
      errorReason,
      transaction: '',
      network: 'eip155:84532',
      payer,
    })
    expect(header(response, 'cache-control')).toBe('no-store')
    await expectNotSold(response)
    expect(at.shop.runs).toHaveLength(1)
    expect(at.shop.faults).toHaveLength(0)
  })

  test.each(silences)('when settling meets %s the goods stay, and it can be settled later', async (_what, doing) => {
    await at.impatient(doing)
    at.fake.script('/settle', doing)
    const response = await at.buy(v2())
    expect(response.status).toBe(503)
    expect(response.headers.has('payment-response')).toBe(false)
    const text = await response.clone().text()
    expect(JSON.parse(text)).toMatchObject({ code: 'settlement-unavailable' })
    expect(text).not.toMatch(/inside|127\.0\.0\.1|req_fake|purser|settlement-token|nothing was charged/i)
    await expectNotSold(response)

    at.fake.script('/settle', { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:09.000Z' } })
    expect(at.shop.faults).toMatchObject([{ stage: 'settle', payment: { paymentId: 'pay_01' } }])
    expect(await at.shop.faults[0]?.settleAgain?.()).toMatchObject({ status: 'settled', txHash })
  })

  test('a settlement whose response was lost is requested again, and the response is sent', async () => {
    at.fake.script('/settle', 'reset', { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:09.000Z' } })
    const response = await at.buy(v2())
    expect(await response.json()).toEqual(goods)
    const keys = at.fake.calls('/settle').map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(2)
    expect(keys[0]).toBe(keys[1])
  })

  test('a settlement that was broadcast and is not known yet lets the goods out and says that it is pending', async () => {
    at.fake.script('/settle', { status: 202, body: { status: 'settling', txHash } })
    const response = await at.buy(v2())
    expect(await response.json()).toEqual(goods)
    expect(decodePaymentResponseHeader(header(response, 'payment-response'))).toEqual({
      success: true,
      transaction: txHash,
      network: 'eip155:84532',
      payer,
      extra: { settlement: 'pending' },
    })
  })

  test.each([
    ['release', null],
    ['hold', txHash],
  ] as const)(
    'with onPending %s and hash %s a pending settlement keeps the goods back until it is known',
    async (onPending, hash) => {
      await at.open({ pay: { onPending } })
      const known = { status: 200, body: { txHash, settledAt: '2026-11-21T00:00:09.000Z' } }
      at.fake.script('/settle', { status: 202, body: { status: 'settling', txHash: hash } }, known)
      const response = await at.buy(v2())
      expect(await response.json()).toEqual(goods)
      expect(header(response, 'payment-response')).toBe(
        encodeHeader({ success: true, transaction: txHash, network: 'eip155:84532', payer }),
      )
      const keys = at.fake.calls('/settle').map(({ headers }) => headers['idempotency-key'])
      expect(new Set(keys).size).toBe(2)
    },
  )

  test('a pending settlement that outlasts holdMsMax keeps the goods and is 503', async () => {
    await at.open({ wallet: { onPending: 'hold', holdMsMax: 0 } })
    at.fake.script('/settle', { status: 202, body: { status: 'settling', txHash } })
    const response = await at.buy(v2())
    expect(response.status).toBe(503)
    await expectNotSold(response)
    expect(at.shop.faults).toMatchObject([{ stage: 'settle', error: { code: 'settlement-pending' } }])
  })

  test('a streamed answer waits for the settlement and arrives whole', async () => {
    const response = await at.buy(v2(), '/streams')
    const text = await response.text()
    expect(text).toHaveLength(4 * 65_536)
    expect([text[0], text[65_536], text[131_072], text[196_608]]).toEqual(['a', 'b', 'c', 'd'])
    expect(header(response, 'content-type')).toContain('text/plain')
    expect(header(response, 'payment-response')).not.toBe('')
  })

  test('a release that Purser refuses for a payment in settlement is no fault, and its failure is one', async () => {
    at.fake.script('/release', problem(409, 'payment-in-settlement'), problem(422, 'invalid-request'))
    for (const place of [1, 2]) {
      expect((await at.buy(v2(), '/fails')).status).toBe(422)
      await vi.waitFor(() => expect(at.fake.released).toHaveLength(place))
    }
    await vi.waitFor(() => expect(at.shop.faults).not.toEqual([]))
    expect(at.shop.faults).toMatchObject([{ stage: 'release', error: { code: 'invalid-request' } }])
  })

  test('an answer larger than bodyBytesMax is 500 and not charged', async () => {
    await at.open({ pay: { bodyBytesMax: 1_000_000 } })
    const response = await at.buy(v2(), '/huge')
    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({ code: 'response-too-large' })
    expect(at.fake.calls('/settle')).toHaveLength(0)
    expect(at.shop.faults).toMatchObject([{ stage: 'handler' }])
    await vi.waitFor(() => expect(at.fake.released).toHaveLength(1))
    expect((await at.buy(v2(), '/streams')).status).toBe(200)
  })
})
