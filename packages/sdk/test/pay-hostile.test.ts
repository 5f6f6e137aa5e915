import { inspect } from 'node:util'
import {
  encodeMppJson,
  encodePaymentResponse,
  formatChallenge,
  networkByName,
  parsePaymentPayload,
  tempoChargeRequest,
} from '@purser/protocol'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  createPayingFetch,
  type PayingFetchOptions,
  PaymentOutcomeUnknownError,
  type PaymentRecord,
  PaymentRejectedError,
  paymentOf,
  streamBytesMax,
  UnreplayableBodyError,
} from '../src/pay/index.ts'
import { asks, bodyOf, decoded, errorOf, listeningSigner, must, offer, payTo, seller, serve } from './pay-stage.ts'

const cent = asks(offer(10_000n))

function stage(options: Partial<PayingFetchOptions> = {}) {
  const signer = listeningSigner()
  const records: PaymentRecord[] = []
  const onPayment = (record: PaymentRecord) => void records.push(record)
  const limits = { perCall: '0.01', perDay: '0.02' }
  return { signer, records, pay: createPayingFetch({ signer, limits, onPayment, ...options }) }
}

const tempo = must(networkByName('tempo-moderato'))
const charge = { amount: '10000', currency: must(tempo.tokens[0]).address, recipient: payTo, chainId: tempo.chainId }
const tempoChallenge = formatChallenge({
  id: 'ch_1',
  realm: 's.test',
  method: 'tempo',
  intent: 'charge',
  request: encodeMppJson(tempoChargeRequest(charge)),
})

const unknown = (error: unknown): PaymentOutcomeUnknownError => {
  if (!(error instanceof PaymentOutcomeUnknownError)) throw new Error('another error', { cause: error })
  return error
}

test('a seller that requests payment again and again gets one signature, and its reason is reported', async () => {
  let requested = 0
  const url = await serve((_req, res) => {
    requested += 1
    const error = 'insufficient_funds'
    res
      .writeHead(402, { ...cent, 'content-type': 'application/json' })
      .end(JSON.stringify({ error, detail: 'no money' }))
  })
  const { pay, signer, records } = stage()
  const error = await errorOf(pay(url))
  expect(error).toBeInstanceOf(PaymentRejectedError)
  expect(error).toMatchObject({ status: 402, reason: 'insufficient_funds', detail: 'no money' })
  expect(error instanceof PaymentRejectedError && (await error.response.json())).toMatchObject({ detail: 'no money' })
  expect(requested).toBe(2)
  expect(signer.requested).toHaveLength(1)
  expect(records).toMatchObject([{ outcome: 'rejected', amountUsd: '0.01', status: 402 }])
})

test('a seller that raises the price after the signature gets nothing more, and the first stays counted', async () => {
  const url = await serve((req, res) => {
    const price = req.headers['payment-signature'] === undefined ? 10_000n : 9_000_000n
    res.writeHead(402, asks(offer(price))).end()
  })
  const { pay, signer } = stage()
  expect(await errorOf(pay(url))).toBeInstanceOf(PaymentRejectedError)
  expect(await errorOf(pay(url))).toBeInstanceOf(PaymentRejectedError)
  expect(await errorOf(pay(url))).toMatchObject({ limit: 'perDay', spentUsd: '0.02' })
  expect(signer.requested.map(({ message }) => message.value)).toEqual([10_000n, 10_000n])
})

test('409 is a refusal too, and is not paid again', async () => {
  const url = await serve((req, res) => {
    if (req.headers['payment-signature'] === undefined) res.writeHead(402, cent).end()
    else res.writeHead(409).end(JSON.stringify({ code: 'duplicate-payment', title: 'Duplicate Payment' }))
  })
  const { pay, signer } = stage()
  expect(await errorOf(pay(url))).toMatchObject({ code: 'payment-rejected', status: 409, reason: 'duplicate-payment' })
  expect(signer.requested).toHaveLength(1)
})

const longConflict = 'a 409 of which the body is too long'

test.each(['a connection that breaks', '500', '503', 'settlement_pending', 'delivery-in-progress', longConflict])(
  'after %s nothing new is signed, and retry sends the same credential again',
  async (trouble) => {
    const seen: unknown[] = []
    const pending = { success: false, errorReason: 'settlement_pending', transaction: '0x1', network: 'eip155:84532' }
    const url = await serve(async (req, res) => {
      const payment = req.headers['payment-signature']
      const body = (await bodyOf(req)).toString()
      if (payment === undefined) return void res.writeHead(402, cent).end()
      seen.push([payment, body])
      if (seen.length > 2) return void res.end('goods')
      if (trouble === 'a connection that breaks') return void req.socket.destroy()
      if (trouble === 'delivery-in-progress')
        return void res.writeHead(409).end(JSON.stringify({ code: 'delivery-in-progress', title: 'Conflict' }))
      if (trouble === longConflict) return void res.writeHead(409).end(' '.repeat(300_000))
      if (trouble !== 'settlement_pending') return void res.writeHead(Number(trouble)).end('boom')
      res.writeHead(402, { ...cent, 'PAYMENT-RESPONSE': encodePaymentResponse(pending) }).end()
    })
    const { pay, signer, records } = stage()
    const first = unknown(await errorOf(pay(url, { method: 'POST', body: 'question' })))
    expect(first.credential?.header).toBe('PAYMENT-SIGNATURE')
    const second = unknown(await errorOf(first.retry()))
    const response = await second.retry()
    expect(await response.text()).toBe('goods')
    expect(paymentOf(response)).toMatchObject({ outcome: 'paid', reservationId: first.payment.reservationId })
    expect(seen).toEqual(Array(3).fill([first.credential?.value, 'question']))
    expect(signer.requested).toHaveLength(1)
    expect(records.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown', 'paid'])
  },
)

test('a caller who aborts while the seller has the credential can retry without the aborted signal', async () => {
  const giveUp = new AbortController()
  let sent = 0
  const url = await serve((req, res) => {
    if (req.headers['payment-signature'] === undefined) return void res.writeHead(402, cent).end()
    sent += 1
    if (sent === 1) giveUp.abort(new Error('too slow'))
    else res.end('goods')
  })
  const { pay, signer } = stage()
  const error = unknown(await errorOf(pay(url, { signal: giveUp.signal })))
  expect(error).toMatchObject({ status: undefined, cause: { message: 'too slow' } })
  expect(await (await error.retry()).text()).toBe('goods')
  expect(signer.requested).toHaveLength(1)
})

test('a caller who gives up before the signature has paid nothing', async () => {
  const giveUp = new AbortController()
  const confirm = () => {
    giveUp.abort(new Error('changed my mind'))
    return true
  }
  const url = await serve((_req, res) => void res.writeHead(402, cent).end())
  const { pay, signer, records } = stage({ limits: { perCall: '1', confirmAbove: '0', confirm } })
  expect(await errorOf(pay(url, { signal: giveUp.signal }))).toMatchObject({ message: 'changed my mind' })
  expect([signer.requested, records]).toEqual([[], []])
})

test('a credential is in no message, and not in what is printed of an error', async () => {
  const url = await serve((req, res) => {
    res.writeHead(req.headers['payment-signature'] === undefined ? 402 : 500, cent).end()
  })
  const error = unknown(await errorOf(stage().pay(url)))
  const value = error.credential?.value ?? ''
  expect(parsePaymentPayload(decoded(value)).ok).toBe(true)
  for (const printed of [inspect(error, { depth: 9 }), JSON.stringify(error), String(error), String(error.stack)])
    expect(printed).not.toContain(value.slice(0, 40))
})

test('a failed push may have moved the money: it stays counted, and the caller gets an error', async () => {
  const { pay, records, signer } = stage({
    fetch: async () => new Response('', { status: 402, headers: { 'www-authenticate': tempoChallenge } }),
    signer: { ...listeningSigner(), sendTransaction: () => Promise.reject(new Error('timed out')) },
  })
  const error = unknown(await errorOf(pay('https://s.test/')))
  expect(error).toMatchObject({ credential: undefined, cause: { message: 'timed out' } })
  expect(unknown(await errorOf(pay('https://s.test/')))).toBeInstanceOf(PaymentOutcomeUnknownError)
  expect(await errorOf(pay('https://s.test/'))).toMatchObject({ limit: 'perDay', spentUsd: '0.02' })
  expect(records.map(({ outcome }) => outcome)).toEqual(['unknown', 'unknown'])
  expect(signer.requested).toEqual([])
})

test('a redirect to another host is not followed with the credential, before or after the payment', async () => {
  const caught: unknown[] = []
  const thief = await serve((req, res) => {
    caught.push(req.headers['payment-signature'])
    res.writeHead(402, cent).end()
  })
  const url = await serve((req, res) => {
    if (req.url === '/away') return void res.writeHead(307, { location: `${thief}/` }).end()
    if (req.headers['payment-signature'] === undefined) return void res.writeHead(402, cent).end()
    res.writeHead(307, { location: `${thief}/` }).end()
  })
  const { pay, signer, records } = stage()
  expect(await errorOf(pay(`${url}/away`))).toMatchObject({ refusals: [{ offer: '*', reason: 'redirected' }] })
  expect(signer.requested).toEqual([])
  const response = await pay(`${url}/later`)
  expect([response.status, response.headers.get('location')]).toEqual([307, `${thief}/`])
  expect(records).toMatchObject([{ outcome: 'unknown', status: 307 }])
  expect(caught).toEqual([undefined])
})

test('an underlying fetch that follows redirects all the same is noticed', async () => {
  const elsewhere = new Response('goods')
  Object.defineProperty(elsewhere, 'url', { value: 'https://thief.test/' })
  const fetch = seller(
    () => cent,
    () => elsewhere,
  )
  expect(unknown(await errorOf(stage({ fetch }).pay('https://s.test/'))).status).toBe(200)
})

const form = () => {
  const data = new FormData()
  data.set('file', new Blob(['report']), 'report.txt')
  return data
}
const text = 'häufig'
const bodies: [string, () => BodyInit][] = [
  ['a string', () => text],
  ['bytes', () => new TextEncoder().encode(text)],
  ['parameters', () => new URLSearchParams({ q: text })],
  ['a Blob', () => new Blob([text], { type: 'text/x' })],
  ['a form', form],
  ['a stream', () => new Blob([text]).stream()],
]

test.each(bodies)('%s is sent a second time byte for byte, with its type', async (_what, make) => {
  const seen: unknown[] = []
  const url = await serve(async (req, res) => {
    seen.push([req.method, req.headers['content-type'], (await bodyOf(req)).toString()])
    if (req.headers['payment-signature'] === undefined) res.writeHead(402, cent).end()
    else res.end('goods')
  })
  const init = { method: 'PUT', body: make(), duplex: 'half' }
  expect(await (await stage().pay(url, init)).text()).toBe('goods')
  expect(await (await stage().pay(new Request(url, { ...init, body: make() }))).text()).toBe('goods')
  expect(seen).toHaveLength(4)
  expect(seen[1]).toEqual(seen[0])
  expect(seen[3]).toEqual(seen[2])
})

test('a Blob, which may be a file larger than memory, is not copied', async () => {
  const file = new Blob(['a large file'])
  const given: unknown[] = []
  const shop = seller(() => cent)
  const fetch: typeof globalThis.fetch = (input, init) => {
    given.push(init?.body)
    return shop(input, init)
  }
  await stage({ fetch }).pay('https://s.test/', { method: 'POST', body: file })
  expect(given).toHaveLength(2)
  for (const body of given) expect(body).toBe(file)
})

test('what a caller changes in its bytes while it waits does not change what is paid for', async () => {
  const bytes = new TextEncoder().encode('one')
  const seen: string[] = []
  const url = await serve(async (req, res) => {
    seen.push((await bodyOf(req)).toString())
    bytes.set(new TextEncoder().encode('two'))
    if (req.headers['payment-signature'] === undefined) res.writeHead(402, cent).end()
    else res.end()
  })
  await stage().pay(url, { method: 'POST', body: bytes })
  expect(seen).toEqual(['one', 'one'])
})

test('a stream that is too long to keep is refused before anything is sent', async () => {
  let requests = 0
  const url = await serve((_req, res) => {
    requests += 1
    res.writeHead(402, cent).end()
  })
  const part = new Uint8Array(1_048_576)
  const endless = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(part) })
  const { pay, signer } = stage()
  const error = await errorOf(pay(url, { method: 'POST', body: endless }))
  expect(error).toBeInstanceOf(UnreplayableBodyError)
  expect(error).toMatchObject({ code: 'body-too-large', bytesMax: streamBytesMax })
  expect([requests, signer.requested]).toEqual([0, []])
})

test('a 402 whose body never ends is not read to its end', async () => {
  const url = await serve((_req, res) => {
    res.writeHead(402, { 'content-type': 'application/json' })
    const more = () => {
      while (!res.destroyed && res.write(' '.repeat(65_536)));
    }
    res.on('drain', more)
    more()
  })
  const response = await stage().pay(url)
  expect(response.status).toBe(402)
  await response.body?.cancel()
})

test.each([
  [402, 'rejected', PaymentRejectedError],
  [409, 'unknown', PaymentOutcomeUnknownError],
] as const)('a %s to a credential whose body never arrives is %s after ten seconds', async (status, outcome, kind) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const url = await serve((req, res) => {
    if (req.headers['payment-signature'] === undefined) return void res.writeHead(402, cent).end()
    res.writeHead(status, { 'content-type': 'application/json' }).write('{')
  })
  const { pay, records } = stage()
  const error = errorOf(pay(url))
  await vi.waitFor(() => {
    vi.advanceTimersByTime(10_000)
    expect(records).toMatchObject([{ outcome, amountUsd: '0.01' }])
  })
  expect(await error).toBeInstanceOf(kind)
})

test('a callback that throws does not cost the goods', async () => {
  const faults: unknown[] = []
  const onPayment = () => {
    throw new Error('the book is full')
  }
  const { pay } = stage({ fetch: seller(() => cent), onPayment, onFault: (error) => faults.push(error) })
  expect(await (await pay('https://s.test/')).text()).toBe('goods')
  expect(faults).toMatchObject([{ message: 'the book is full' }])
})
