import { x402Client } from '@x402/core/client'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader, x402HTTPClient } from '@x402/core/http'
import { describe, expect, test } from 'vitest'
import { decodeXPaymentResponse } from 'x402/shared'
import { payer, problem, txHash } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, silences, stageOf, v1, v2 } from './stage.ts'

const stub = { 'X-PAYMENT': 'stub_payment_accepted' }

describe.each(frameworks)('%s', (name, openShop) => {
  const at = stageOf(openShop)

  test('without a payment: 402 with the header for version 2, the body for version 1, and no handler', async () => {
    const response = await at.buy({}, '/paid?city=paris')
    expect(response.status).toBe(402)
    expect(header(response, 'content-type')).toContain('application/json')
    expect(header(response, 'cache-control')).toBe('no-store')
    expect(header(response, 'access-control-expose-headers')).toBe(
      `${name === 'next' ? '' : 'X-Own, '}PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt, Payment-Replayed, X-Service-Session-Id, Retry-After`,
    )
    const resource = `${at.shop.url}/paid?city=paris`
    expect(decodePaymentRequiredHeader(header(response, 'payment-required'))).toMatchObject({
      x402Version: 2,
      resource: { url: resource },
    })
    expect(await response.json()).toMatchObject({ x402Version: 1, accepts: [{ network: 'base-sepolia' }] })
    const requested = { walletId: 'byw_1', resource, price: '0.01', description: 'Goods', mimeType: 'application/json' }
    expect(at.fake.calls('/challenge').map(({ body }) => body)).toEqual([requested])
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a version 2 payment is verified before the handler and settled after it, and the answer says so', async () => {
    const credential = v2()
    const response = await at.buy(credential)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual(goods)
    expect(decodePaymentResponseHeader(header(response, 'payment-response'))).toEqual({
      success: true,
      transaction: txHash,
      network: 'eip155:84532',
      payer,
    })
    expect(response.headers.has('x-payment-response')).toBe(false)
    expect(header(response, 'cache-control')).toBe('max-age=60, private')
    const targeted = ['cdn-cache-control', 'surrogate-control', 'x-accel-expires']
    expect(targeted.map((name) => header(response, name))).toEqual(
      targeted.map(() => header(response, 'no-such-header')),
    )
    expect(header(response, 'access-control-expose-headers')).toContain('X-Own, PAYMENT-REQUIRED')
    expect(at.fake.seen.map(({ path, body }) => [path, body])).toEqual([
      [
        '/payments/verify',
        {
          protocol: 'x402',
          credential: credential['PAYMENT-SIGNATURE'],
          price: '0.01',
          currency: 'USD',
          walletId: 'byw_1',
          resource: `${at.shop.url}/paid`,
          method: 'GET',
          description: 'Goods',
          reportsDelivery: true,
        },
      ],
      ['/payments/settle', { paymentId: 'pay_01', settlementToken: 'settlement-token-secret' }],
    ])
  })

  test('a version 1 payment is answered in the words of version 1', async () => {
    const response = await at.buy(v1())
    expect(await response.json()).toEqual(goods)
    expect(response.headers.has('payment-response')).toBe(false)
    expect(decodeXPaymentResponse(header(response, 'x-payment-response'))).toEqual({
      success: true,
      transaction: txHash,
      network: 'base-sepolia',
      payer,
    })
  })

  test('a stub pays, is passed on as it is, and is not settled', async () => {
    const response = await at.buy(stub)
    expect(await response.json()).toEqual(goods)
    expect(at.fake.calls('/verify')[0]?.body).toMatchObject({ protocol: 'x402', credential: 'stub_payment_accepted' })
    expect(at.fake.calls('/settle')).toHaveLength(0)
    expect(decodePaymentResponseHeader(header(response, 'x-payment-response'))).toEqual({
      success: true,
      transaction: '',
      network: 'stub',
    })
  })

  test('the handler knows the payment, without the token that settles it', async () => {
    await at.buy(v2())
    expect(at.shop.runs).toEqual([
      {
        paymentId: 'pay_01',
        protocol: 'x402',
        scheme: 'exact',
        method: null,
        challengeId: null,
        redeemable: false,
        network: 'eip155:84532',
        amount: '0.01',
        coin: 'USDC',
        payer,
        txHash: null,
        settledAt: null,
        settlementPending: true,
      },
    ])
  })

  test('two payment headers are 400, without a request to Purser', async () => {
    const response = await at.buy({ ...v2(), ...v1() })
    expect(response.status).toBe(400)
    expect(header(response, 'content-type')).toContain('application/problem+json')
    expect(await response.json()).toMatchObject({ status: 400, code: 'ambiguous-payment' })
    expect(at.fake.seen).toHaveLength(0)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a refused payment is 402 with a fresh challenge, and both versions read the reason', async () => {
    at.fake.script('/verify', problem(402, 'payment-verification-failed', { reason: 'invalid_exact_evm_signature' }))
    const [first, second] = [await at.buy(v2()), await at.buy(v2())]
    const required = decodePaymentRequiredHeader(header(first, 'payment-required'))
    expect(required).toMatchObject({ x402Version: 2, error: 'invalid_exact_evm_signature' })
    expect(first.status).toBe(402)
    expect(await first.json()).toMatchObject({ error: 'invalid_exact_evm_signature', accepts: [{ scheme: 'exact' }] })
    expect(header(second, 'payment-required')).not.toBe(header(first, 'payment-required'))
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a credential that Purser cannot read is 402 invalid_payload, not an outage', async () => {
    at.fake.script(
      '/verify',
      problem(422, 'validation-error', { errors: [{ path: '/credential', message: 'too long' }] }),
    )
    const response = await at.buy({ 'PAYMENT-SIGNATURE': 'not base64' })
    expect(response.status).toBe(402)
    expect(await response.json()).toMatchObject({ error: 'invalid_payload' })
    expect(at.shop.runs).toHaveLength(0)
  })

  test('one credential sent ten times at once runs the handler once', async () => {
    const credential = v2()
    const answers = await Promise.all(Array.from({ length: 10 }, () => at.buy(credential)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
    const refused = answers.find(({ status }) => status === 409)
    expect(await refused?.json()).toMatchObject({ code: 'delivery-in-progress' })
    expect(at.shop.runs).toHaveLength(1)
    expect(at.fake.calls('/settle')).toHaveLength(1)
  })

  test.each(silences)(
    'fails closed when verifying meets %s: 503, no handler, nothing from inside',
    async (_what, doing) => {
      await at.impatient(doing)
      at.fake.script('/verify', doing)
      const response = await at.buy(v2())
      expect(response.status).toBe(503)
      expect(header(response, 'content-type')).toContain('application/problem+json')
      const text = await response.text()
      expect(JSON.parse(text)).toMatchObject({ status: 503, code: 'payments-unavailable' })
      expect(text).not.toMatch(/inside|127\.0\.0\.1|req_fake|purser|svc_test/i)
      expect(at.shop.runs).toHaveLength(0)
      expect(at.fake.calls('/settle')).toHaveLength(0)
      expect(at.shop.faults).toMatchObject([{ stage: 'verify' }])
    },
  )

  test.each(silences)('asking to pay fails closed when the challenge meets %s', async (_what, doing) => {
    await at.impatient(doing)
    at.fake.script('/challenge', doing)
    const response = await at.buy({})
    expect(response.status).toBe(503)
    expect(await response.text()).not.toMatch(/inside|127\.0\.0\.1|req_fake|purser|svc_test/i)
    expect(at.shop.runs).toHaveLength(0)
    expect(at.shop.faults).toMatchObject([{ stage: 'challenge' }])
  })

  test('the official client reads the challenge, settlement and refusal responses', async () => {
    const client = new x402HTTPClient(new x402Client())
    expect(await client.processResponse(await at.buy({}))).toMatchObject({ paymentStatus: 'payment_required' })
    expect(await client.processResponse(await at.buy(v2()))).toMatchObject({ paymentStatus: 'settled', body: goods })
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    expect(await client.processResponse(await at.buy(v2()))).toMatchObject({ paymentStatus: 'settle_failed' })
  })
})
