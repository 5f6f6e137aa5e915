import { describe, expect, test } from 'vitest'
import { createPayingFetch, type PayingFetchOptions, paymentOf } from '../src/pay/index.ts'
import { asks, listeningSigner, noon, offer, payTo } from './pay-stage.ts'

const sessionHeader = 'x-service-session-id'
const otherWallet = '0x1111111111111111111111111111111111111111'

interface Requested {
  readonly url: string
  readonly session: string | null
  readonly isPaid: boolean
  readonly redirect: RequestRedirect
}

/** What a seller does with a request; an unpaid one of a route that has no session for it is a 402 that names the wallet. */
interface Seller {
  readonly fetch: typeof globalThis.fetch
  readonly requested: Requested[]
  readonly payments: () => number
}

interface Rules {
  /** The wallet that a path sells for, and whether it takes sessions. */
  readonly route?: (path: string) => { readonly payTo: string; readonly takesSessions: boolean }
  readonly isGood?: (session: string) => boolean
  readonly response?: (url: URL, session: string | null) => Response | undefined
}

function aSeller({
  route = () => ({ payTo, takesSessions: true }),
  isGood = () => true,
  response,
}: Rules = {}): Seller {
  const requested: Requested[] = []
  let sold = 0
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    const [url, session] = [new URL(request.url), request.headers.get(sessionHeader)]
    const isPaid = request.headers.has('payment-signature')
    requested.push({ url: request.url, session, isPaid, redirect: request.redirect })
    const { payTo: wallet, takesSessions } = route(url.pathname)
    if (isPaid)
      return new Response('goods', takesSessions ? { headers: { [sessionHeader]: `${wallet}-${++sold}` } } : {})
    const isLetIn = takesSessions && session?.startsWith(wallet) === true && isGood(session)
    if (isLetIn || url.pathname === '/free') return response?.(url, session) ?? new Response('goods')
    return new Response('{}', { status: 402, headers: asks(offer(10_000n, { payTo: wallet })) })
  }
  return { fetch, requested, payments: () => requested.filter(({ isPaid }) => isPaid).length }
}

function aFetch(seller: Seller, options: Partial<PayingFetchOptions> = {}) {
  const limits = { perCall: '0.05' }
  return createPayingFetch({ signer: listeningSigner(), limits, fetch: seller.fetch, now: () => noon, ...options })
}

test('what one payment bought is shown in the next calls to the same origin, and they are not paid', async () => {
  const seller = aSeller()
  const paying = aFetch(seller)
  const first = await paying('https://seller.test/a')
  expect(paymentOf(first)).toMatchObject({ outcome: 'paid' })
  for (const path of ['/a', '/b?c=1']) {
    const next = await paying(`https://seller.test${path}`)
    expect([next.status, await next.text(), paymentOf(next)]).toEqual([200, 'goods', undefined])
  }
  expect(seller.payments()).toBe(1)
  expect(seller.requested.map(({ session }) => session)).toEqual([null, null, `${payTo}-1`, `${payTo}-1`])
})

test('a session that is over is paid again, once, and the new one takes its place', async () => {
  const over = new Set([`${payTo}-1`])
  const seller = aSeller({ isGood: (session) => !over.has(session) })
  const paying = aFetch(seller)
  for (let call = 0; call < 4; call++) expect((await paying('https://seller.test/a')).status).toBe(200)
  expect(seller.payments()).toBe(2)
  expect(seller.requested.at(-1)?.session).toBe(`${payTo}-2`)
})

test('a session does not go beside the payment that takes its place', async () => {
  const seller = aSeller({ isGood: () => false })
  const paying = aFetch(seller)
  await paying('https://seller.test/a')
  await paying('https://seller.test/a')
  expect(seller.requested.filter(({ isPaid }) => isPaid).map(({ session }) => session)).toEqual([null, null])
})

test.each(['https://seller.test:8443/a', 'http://seller.test/a', 'https://other.test/a', 'https://a.seller.test/a'])(
  'a session of https://seller.test does not go to %s',
  async (url) => {
    const seller = aSeller()
    const paying = aFetch(seller, { allowInsecure: true })
    await paying('https://seller.test/a')
    await paying(url)
    expect(seller.requested.filter((requested) => requested.url === url).map(({ session }) => session)).toEqual([
      null,
      null,
    ])
  },
)

test('a call with a session follows no redirect, so that the session stays where it was paid for', async () => {
  const elsewhere = new Response(null, { status: 302, headers: { location: 'https://evil.test/' } })
  const seller = aSeller({ response: ({ pathname }) => (pathname === '/moved' ? elsewhere : undefined) })
  const paying = aFetch(seller)
  await paying('https://seller.test/a')
  const moved = await paying('https://seller.test/moved')
  expect([moved.status, seller.requested.at(-1)?.redirect]).toEqual([302, 'manual'])
  expect(seller.requested.some(({ url }) => url.startsWith('https://evil.test'))).toBe(false)
})

describe('at an origin where two wallets sell', () => {
  const route = (path: string) => ({ payTo: path === '/other' ? otherWallet : payTo, takesSessions: path !== '/each' })

  test('each is paid once: the session of the wallet that a 402 names is tried before paying', async () => {
    const seller = aSeller({ route })
    const paying = aFetch(seller)
    for (let round = 0; round < 3; round++) {
      for (const path of ['/a', '/other']) expect((await paying(`https://seller.test${path}`)).status).toBe(200)
    }
    expect(seller.payments()).toBe(2)
  })

  test('a route that takes no sessions is paid for each call, and the session of the others lives on', async () => {
    const seller = aSeller({ route })
    const paying = aFetch(seller)
    for (const path of ['/a', '/each', '/a', '/each', '/a']) await paying(`https://seller.test${path}`)
    expect(seller.requested.filter(({ isPaid }) => isPaid).map(({ url }) => new URL(url).pathname)).toEqual([
      '/a',
      '/each',
      '/each',
    ])
  })
})

test('with sessions turned off none is shown', async () => {
  const seller = aSeller()
  const paying = aFetch(seller, { sessions: false })
  for (let call = 0; call < 3; call++) await paying('https://seller.test/a')
  expect([seller.payments(), seller.requested.some(({ session }) => session !== null)]).toEqual([3, false])
})

test('a session is forgotten after a week', async () => {
  let now = noon
  const seller = aSeller()
  const paying = aFetch(seller, { now: () => now })
  await paying('https://seller.test/free')
  await paying('https://seller.test/a')
  now += 604_800_000
  await paying('https://seller.test/free')
  expect(seller.requested.at(-1)?.session).toBeNull()
})

test('a session of the caller’s own goes out as it is', async () => {
  const seller = aSeller()
  const paying = aFetch(seller)
  await paying('https://seller.test/a')
  await paying('https://seller.test/a', { headers: { [sessionHeader]: `${payTo}-own` } })
  expect(seller.requested.at(-1)?.session).toBe(`${payTo}-own`)
})

test.each(['x'.repeat(513), 'two words'])('a session that no header should carry is not kept: %s', async (token) => {
  const requested: (string | null)[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    requested.push(request.headers.get(sessionHeader))
    if (request.headers.has('payment-signature')) return new Response('goods', { headers: { [sessionHeader]: token } })
    return new Response('{}', { status: 402, headers: asks(offer(10_000n)) })
  }
  const paying = aFetch({ fetch, requested: [], payments: () => 0 })
  await paying('https://seller.test/a')
  await paying('https://seller.test/a')
  expect(requested).toEqual([null, null, null, null])
})

test('a refused payment leaves no session, whatever its answer carries', async () => {
  const headers = { [sessionHeader]: 'sess_of_a_thief' }
  const requested: (string | null)[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    requested.push(request.headers.get(sessionHeader))
    const status = request.headers.has('payment-signature') ? 409 : 402
    return new Response('{}', { status, headers: { ...asks(offer(10_000n)), ...headers } })
  }
  const paying = aFetch({ fetch, requested: [], payments: () => 0 })
  await expect(paying('https://seller.test/a')).rejects.toMatchObject({ code: 'payment-rejected' })
  await expect(paying('https://seller.test/a')).rejects.toMatchObject({ code: 'payment-rejected' })
  expect(requested).toEqual([null, null, null, null])
})
