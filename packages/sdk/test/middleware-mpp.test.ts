import { once } from 'node:events'
import { request } from 'node:http'
import { contentDigest, parseChallenges, parseReceipt } from '@purser/protocol'
import { describe, expect, test } from 'vitest'
import { problem, txHash, verification } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, mpp, silences, stageOf, v1, v2 } from './stage.ts'

const stub = 'stub_payment_accepted'
const problems = 'https://paymentauth.org/problems/'

describe.each(frameworks)('%s', (name, openShop) => {
  const at = stageOf(openShop)

  const pay = (credential: string, path?: string) => at.buy({ authorization: credential }, path)
  const offersOf = (response: Response) => parseChallenges(header(response, 'www-authenticate'))
  const methodsOf = (response: Response) => offersOf(response).map(({ method }) => method)
  const expectNotSold = async (response: Response) => {
    expect(response.headers.has('payment-receipt')).toBe(false)
    expect(response.headers.has('x-leak')).toBe(false)
    expect(await response.clone().text()).not.toContain(goods.secret)
  }

  test('one 402 asks in both protocols: every MPP offer is a challenge, and the body is a problem record too', async () => {
    const response = await at.buy({})
    expect(response.status).toBe(402)
    expect(header(response, 'payment-required')).not.toBe('')
    expect(methodsOf(response)).toEqual(['tempo', 'evm'])
    expect(await response.json()).toMatchObject({
      x402Version: 1,
      accepts: [{ network: 'base-sepolia' }],
      type: `${problems}payment-required`,
      title: 'Payment Required',
      status: 402,
      detail: expect.any(String),
    })
  })

  test('each MPP offer has its own header if the framework supports that', async () => {
    const asking = request(`${at.shop.url}/paid`)
    asking.end()
    const [response] = await once(asking, 'response')
    response.resume()
    const lines = response.headersDistinct['www-authenticate']
    expect(lines).toHaveLength(name === 'express' || name === 'fastify' ? 2 : 1)
    expect(parseChallenges(lines).map(({ method }) => method)).toEqual(['tempo', 'evm'])
  })

  test.each([
    ['evm/charge, tempo/charge;q=0.5', ['evm', 'tempo']],
    ['evm/*', ['evm']],
    ['tempo/charge;q=0', ['tempo', 'evm']],
    ['stripe/charge', ['tempo', 'evm']],
    ['(unreadable', ['tempo', 'evm']],
  ])('Accept-Payment %j is offered %j', async (accept, methods) => {
    expect(methodsOf(await at.buy({ 'Accept-Payment': accept }))).toEqual(methods)
  })

  test('an MPP payment is verified, settled and proven by a receipt that names its challenge and chain', async () => {
    const credential = mpp('evm')
    const response = await pay(credential)
    expect(await response.json()).toEqual(goods)
    expect(parseReceipt(header(response, 'payment-receipt'))).toEqual({
      status: 'success',
      method: 'evm',
      timestamp: '2026-11-21T00:00:02.000Z',
      reference: txHash,
      challengeId: expect.stringMatching(/^challenge-\d+$/),
      chainId: 84532,
    })
    expect(header(response, 'cache-control')).toBe('max-age=60, private')
    expect(header(response, 'access-control-expose-headers')).toContain('Payment-Receipt')
    expect(response.headers.has('payment-response')).toBe(false)
    expect(at.fake.seen.map(({ path, body }) => [path, body])).toEqual([
      ['/payments/verify', expect.objectContaining({ protocol: 'mpp', credential, price: '0.01', method: 'GET' })],
      ['/payments/settle', { paymentId: 'pay_01', settlementToken: 'settlement-token-secret' }],
    ])
    expect(at.shop.runs).toMatchObject([{ protocol: 'mpp', paymentId: 'pay_01' }])
  })

  test('a Tempo payment that Purser settled while it verified is not settled again', async () => {
    const settled = { settlementPending: false, txHash, settledAt: '2026-11-21T00:00:01.000Z' }
    at.fake.script('/verify', { status: 200, body: verification({ protocol: 'mpp', ...settled }) })
    const receipt = parseReceipt(header(await pay(mpp('tempo')), 'payment-receipt'))
    const timestamp = '2026-11-21T00:00:01.000Z'
    expect(receipt).toMatchObject({ method: 'tempo', chainId: 42431, reference: txHash, timestamp })
    expect(at.fake.calls('/settle')).toHaveLength(0)
  })

  test('a stub pays by MPP as well', async () => {
    const response = await pay(`Payment ${stub}`)
    expect(await response.json()).toEqual(goods)
    expect(parseReceipt(header(response, 'payment-receipt'))).toMatchObject({ method: 'stub', reference: 'pay_01' })
    expect(at.fake.calls('/verify')[0]?.body).toMatchObject({ protocol: 'mpp', credential: stub })
  })

  const every = (): Record<string, string>[] => [
    v2(),
    v1(),
    { Authorization: mpp() },
    { 'Payment-Authorization': mpp('tempo') },
  ]
  const pairs = [0, 1, 2, 3].flatMap((left) =>
    [0, 1, 2, 3].filter((right) => right > left).map((right) => [left, right]),
  )
  test.each(pairs)(
    'payments in two headers (%i and %i) are 400, without a request to Purser',
    async (left = 0, right = 0) => {
      const response = await at.buy({ ...every()[left], ...every()[right] })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ code: 'ambiguous-payment' })
      expect(at.fake.seen).toHaveLength(0)
    },
  )

  test('two payments joined in one header, or in two lines of one name, are 400', async () => {
    const twice = [v2()['PAYMENT-SIGNATURE'], v2()['PAYMENT-SIGNATURE']].join(', ')
    expect((await at.buy({ 'PAYMENT-SIGNATURE': twice })).status).toBe(400)
    expect((await pay(`${mpp()}, ${mpp()}`)).status).toBe(400)
    expect((await pay(`Digest user="a, b", ${mpp()},payment ${mpp().slice(8)}`)).status).toBe(400)
    const asking = request(`${at.shop.url}/paid`, {
      headers: ['Host', 'a', 'Authorization', mpp(), 'Authorization', mpp()],
    })
    asking.end()
    const [response] = await once(asking, 'response')
    response.resume()
    expect(response.statusCode).toBe(400)
    expect(at.fake.seen).toHaveLength(0)
  })

  test("a caller's own key beside the payment, in whatever header, is not ours and does not reach Purser", async () => {
    const key = 'Bearer key-of-the-caller'
    expect((await at.buy({ authorization: key })).status).toBe(402)
    expect((await at.buy({ authorization: key, ...v2() })).status).toBe(200)
    const [beside, joined, digest] = [mpp(), mpp(), mpp()]
    expect((await at.buy({ authorization: key, 'Payment-Authorization': beside })).status).toBe(200)
    expect((await pay(`${key}, ${joined}`)).status).toBe(200)
    expect((await pay(`Digest response="Payment a, Payment b", ${digest}`)).status).toBe(200)
    const sent = at.fake.calls('/verify').map(({ body }) => body.credential)
    expect(sent.slice(1)).toEqual([beside, joined, digest])
    expect(JSON.stringify(at.fake.seen)).not.toContain('key-of-the-caller')
  })

  test('one MPP credential sent ten times at once runs the handler once', async () => {
    const credential = mpp()
    const answers = await Promise.all(Array.from({ length: 10 }, () => pay(credential)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(409)])
    expect(at.shop.runs).toHaveLength(1)
  })

  test.each([
    'verification-failed',
    'payment-expired',
    'invalid-challenge',
    'payment-insufficient',
    'insufficient_funds',
  ])('an MPP payment refused as %s is 402 with fresh challenges and the reason', async (reason) => {
    const message = 'A sentence about it.'
    at.fake.script('/verify', problem(402, 'payment-verification-failed', { reason, message }))
    const [first, second] = [await pay(mpp()), await pay(mpp())]
    expect(first.status).toBe(402)
    expect(header(first, 'cache-control')).toBe('no-store')
    const code = reason === 'insufficient_funds' ? 'verification-failed' : reason
    const record = await first.clone().json()
    expect(record).toMatchObject({
      type: problems + code,
      status: 402,
      detail: `The payment was refused: ${reason}. ${message}`,
    })
    expect(record).toMatchObject({ x402Version: 1, error: 'Payment required' })
    const ids = [...offersOf(first), ...offersOf(second)].map(({ id }) => id)
    expect(new Set(ids).size).toBe(4)
    await expectNotSold(first)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('a credential that nobody can read is 402 malformed-credential', async () => {
    const response = await pay('Payment !!!')
    expect(response.status).toBe(402)
    expect(await response.json()).toMatchObject({ type: `${problems}malformed-credential` })
    at.fake.script('/verify', problem(422, 'validation-error', { errors: [{ path: '/credential', message: 'long' }] }))
    expect(await (await pay(mpp())).json()).toMatchObject({ type: `${problems}malformed-credential` })
  })

  test('a refused payment whose money was sent already is not followed by another challenge, which would be paid too', async () => {
    const refused = problem(402, 'payment-verification-failed', { reason: 'verification-failed', message: 'No memo.' })
    at.fake.script('/verify', refused)
    const response = await pay(mpp('tempo', {}, { type: 'hash', hash: `0x${'ab'.repeat(32)}` }))
    expect(response.status).toBe(402)
    expect(response.headers.has('www-authenticate')).toBe(false)
    expect(response.headers.has('payment-required')).toBe(false)
    await expectNotSold(response)
    expect(await response.json()).toMatchObject({ type: `${problems}verification-failed`, status: 402 })
    expect(at.fake.calls('/challenge')).toHaveLength(0)
  })

  test('a method that is not taken is 400 without a challenge', async () => {
    at.fake.script('/verify', problem(402, 'payment-verification-failed', { reason: 'method-unsupported' }))
    const response = await pay(mpp())
    expect(response.status).toBe(400)
    expect(header(response, 'content-type')).toContain('application/problem+json')
    expect(await response.json()).toMatchObject({ type: `${problems}method-unsupported`, status: 400 })
    expect(response.headers.has('www-authenticate')).toBe(false)
    expect(at.fake.calls('/challenge')).toHaveLength(0)
  })

  test('an x402 payment refused is offered MPP again, with the reason in the words of x402 alone', async () => {
    at.fake.script('/verify', problem(402, 'payment-verification-failed', { reason: 'invalid_exact_evm_signature' }))
    const response = await at.buy(v2())
    expect(offersOf(response)).toHaveLength(2)
    expect(await response.json()).toMatchObject({ error: 'invalid_exact_evm_signature', status: 402 })
  })

  test.each(silences)('verifying an MPP payment fails closed when it meets %s', async (_what, doing) => {
    await at.impatient(doing)
    at.fake.script('/verify', doing)
    const [onEvm, onTempo] = [await pay(mpp('evm')), await pay(mpp('tempo'))]
    expect([onEvm.status, onTempo.status]).toEqual([503, 503])
    await expectNotSold(onTempo)
    const texts = [await onEvm.text(), await onTempo.text()]
    for (const text of texts) expect(text).not.toMatch(/inside|127\.0\.0\.1|req_fake|purser|svc_test/i)
    // An evm/charge is settled after the handler. On Tempo verifying broadcasts, so that nobody knows whether it was sent.
    expect(texts[0]).toMatch(/nothing was served and nothing was charged/i)
    expect(texts[1]).toMatch(/may still settle/)
    expect(at.shop.runs).toHaveLength(0)
    expect(at.shop.faults).toMatchObject([{ stage: 'verify' }, { stage: 'verify' }])
  })

  test.each(['/fails', '/throws'])('a handler that fails at %s is not paid, and there is no receipt', async (path) => {
    const response = await pay(mpp(), path)
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(response.headers.has('payment-receipt')).toBe(false)
    expect(at.fake.calls('/settle')).toHaveLength(0)
  })

  test.each(['/fails', '/throws', '/huge'])(
    'a handler that fails at %s after the money has moved is reported to the provider with the payment',
    async (path) => {
      await at.open({ pay: { bodyBytesMax: 1_000_000 } })
      at.fake.script('/verify', {
        status: 200,
        body: verification({
          protocol: 'mpp',
          settlementPending: false,
          txHash,
          settledAt: '2026-11-21T00:00:01.000Z',
        }),
      })
      await pay(mpp('tempo'), path)
      expect(at.shop.faults).toMatchObject([{ stage: 'handler', payment: { paymentId: 'pay_01', txHash } }])
    },
  )

  test('an MPP payment that could not be settled is not served, and gets a new challenge', async () => {
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    const response = await pay(mpp())
    expect(response.status).toBe(402)
    const detail = expect.stringContaining('settlement-failed')
    expect(await response.clone().json()).toMatchObject({ type: `${problems}verification-failed`, detail })
    expect(offersOf(response)).toHaveLength(2)
    await expectNotSold(response)
  })

  test('whether an MPP payment was settled is not known: 503 without a receipt or a challenge to pay again', async () => {
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    const response = await pay(mpp())
    expect(response.status).toBe(503)
    expect(response.headers.has('www-authenticate')).toBe(false)
    await expectNotSold(response)
  })

  test('an MPP payment that was broadcast and is not known yet lets the goods out with the hash', async () => {
    at.fake.script('/settle', { status: 202, body: { status: 'settling', txHash } })
    const response = await pay(mpp())
    expect(await response.json()).toEqual(goods)
    expect(parseReceipt(header(response, 'payment-receipt'))).toMatchObject({ reference: txHash })
  })

  test('a price of zero is offered in MPP only, and its proof pays with the challenge as reference', async () => {
    const requested = await at.buy({}, '/paid?price=0')
    expect(requested.status).toBe(402)
    expect(requested.headers.has('payment-required')).toBe(false)
    expect(header(requested, 'content-type')).toContain('application/problem+json')
    expect(await requested.json()).toMatchObject({ type: `${problems}payment-required` })
    const [offer] = offersOf(requested)
    expect(offer?.method).toBe('tempo')

    const response = await pay(mpp('tempo', { price: '0' }), '/paid?price=0')
    const receipt = parseReceipt(header(response, 'payment-receipt'))
    expect(receipt?.reference).toMatch(/^challenge-/)
    expect(receipt?.challengeId).toBe(receipt?.reference)
    expect(at.fake.calls('/settle')).toHaveLength(0)
  })

  test('a route may take one protocol: it offers and takes nothing of the other', async () => {
    await at.open({ pay: { protocols: ['x402'] } })
    const x402Only = await pay(mpp())
    expect(x402Only.headers.has('www-authenticate')).toBe(false)
    expect(await x402Only.json()).toEqual(expect.not.objectContaining({ type: expect.anything() }))
    expect(at.fake.calls('/challenge').at(-1)?.body).toMatchObject({ acceptMPP: false })

    await at.open({ wallet: { protocols: ['mpp'] } })
    const mppOnly = await at.buy(v2())
    expect(mppOnly.headers.has('payment-required')).toBe(false)
    expect(offersOf(mppOnly)).toHaveLength(2)
    expect(at.fake.calls('/challenge').at(-1)?.body).toMatchObject({ acceptX402: false })
    expect(at.fake.calls('/verify')).toHaveLength(0)
    expect(at.shop.runs).toHaveLength(0)
  })

  test('with credentialHeader the offers say where the credential belongs', async () => {
    await at.open({ pay: { credentialHeader: 'Payment-Authorization' } })
    const offers = offersOf(await at.buy({}))
    expect(offers.map((offer) => offer.header)).toEqual(['Payment-Authorization', 'Payment-Authorization'])
    expect(at.fake.calls('/challenge')[0]?.body).toMatchObject({ credentialHeader: 'Payment-Authorization' })
  })

  test('with bindBody a payment is valid only for the body of its challenge', async () => {
    await at.open({ wallet: { challengeBatch: 3 }, bindsBody: true })
    const post = (body: string, headers: Record<string, string> = {}) =>
      fetch(`${at.shop.url}/paid`, { method: 'POST', body, headers: { 'content-type': 'text/plain', ...headers } })
    const digest = contentDigest(new TextEncoder().encode('buy Lima'))
    expect(offersOf(await post('buy Lima')).map((offer) => offer.digest)).toEqual([digest, digest])
    await post('buy Lima')
    expect(at.fake.calls('/challenge').map(({ body }) => [body.digest, body.count])).toEqual([
      [digest, undefined],
      [digest, undefined],
    ])
    const other = await post('buy Paris', { authorization: mpp('evm', { digest }) })
    expect(other.status).toBe(402)
    const response = await post('buy Lima', { authorization: mpp('evm', { digest }) })
    expect(await response.json()).toEqual(goods)
    expect(at.fake.calls('/verify').at(-1)?.body).toMatchObject({ digest, method: 'POST' })
  })

  test('offers fetched ahead are each shown once', async () => {
    await at.open({ wallet: { challengeBatch: 3 } })
    const shown = new Set<string>()
    for (let payers = 0; payers < 7; payers++) for (const { id } of offersOf(await at.buy({}))) shown.add(id)
    expect(shown.size).toBe(14)
    expect(at.fake.calls('/challenge')).toHaveLength(3)
  })
})
