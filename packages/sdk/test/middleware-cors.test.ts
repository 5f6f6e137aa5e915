import { describe, expect, test } from 'vitest'
import { browserAt } from './browser.ts'
import { problem, verification } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, mpp, stageOf, v1, v2 } from './stage.ts'

const origins = ['https://app.test', 'https://other-app.test']
const duplicate = problem(409, 'duplicate-payment')

function varyOf(headers: Headers): string[] {
  return (headers.get('vary') ?? '').split(',').map((name) => name.trim().toLowerCase())
}

describe.each(frameworks)('%s', (name, openShop) => {
  const at = stageOf(openShop)
  const open = (cors: object = {}) => at.open({ pay: { cors: { origins, ...cors }, bodyBytesMax: 1_000_000 } })
  const [app, other, stranger] = [...origins, 'https://evil.test'].map(browserAt)
  // Hono itself lets a header of an earlier middleware win over the handler's.
  const ofHandler = name === 'hono' ? 'accept-encoding' : 'accept-language'
  if (app === undefined || other === undefined || stranger === undefined) throw new Error('no browser')

  test.each([
    ['version 2', v2, 'payment-response'],
    ['version 1', v1, 'x-payment-response'],
    ['MPP', () => ({ Authorization: mpp() }), 'payment-receipt'],
    ['MPP beside a key', () => ({ 'Payment-Authorization': mpp() }), 'payment-receipt'],
  ] as const)('a script of an allowed origin pays with %s and reads what it bought', async (_, pay, receipt) => {
    await open()
    const unpaid = await app(`${at.shop.url}/paid`)
    expect([unpaid.status, unpaid.header('payment-required')]).toEqual([402, expect.any(String)])
    expect(unpaid.header('www-authenticate')).toContain('Payment ')
    for (const browser of [app, other]) {
      const bought = await browser(`${at.shop.url}/paid`, { headers: pay() })
      expect([bought.status, JSON.parse(bought.text)]).toEqual([200, goods])
      expect(bought.header(receipt)).toEqual(expect.any(String))
    }
  })

  test('every method, JSON bodies, signatures and sessions pass the preflight', async () => {
    await open({ headers: ['Content-Type', 'X-Mine'] })
    const json = { 'Content-Type': 'application/json', 'X-Mine': '1', 'Accept-Payment': 'tempo/charge' }
    const signed = { 'X-Service-Redemption': 'none', 'X-Service-Session-Id': 'none' }
    for (const method of ['PUT', 'PATCH', 'DELETE', 'POST']) {
      const headers = { ...v2(), ...json, ...signed }
      const response = await app(`${at.shop.url}/slow`, { method, headers, body: '{}' })
      expect([method, response.status]).toEqual([method, 200])
    }
    await expect(app(`${at.shop.url}/paid`, { headers: { 'X-Else': '1' } })).rejects.toThrow('x-else is not allowed')
  })

  test('a script of another origin reads nothing, neither the challenge nor goods', async () => {
    await open()
    await expect(stranger(`${at.shop.url}/paid`)).rejects.toThrow('may not read')
    await expect(stranger(`${at.shop.url}/paid`, { headers: v2() })).rejects.toThrow('may not read')
    await expect(stranger(`${at.shop.url}/fails`, { headers: v2() })).rejects.toThrow('may not read')
    expect(at.shop.runs).toHaveLength(0)
  })

  test('for everybody’s scripts the wildcard is enough', async () => {
    await at.open({ pay: { cors: { origins: '*' } } })
    const bought = await stranger(`${at.shop.url}/paid`, { headers: { ...v2(), 'X-Any': '1' } })
    expect([bought.status, varyOf(bought.raw).includes('origin')]).toEqual([200, false])
  })

  test('what is not sold is readable too: a refusal and a failure of the handler, a 304, a redirect, an answer that is too large', async () => {
    await open()
    const unsold = [
      ['/fails', 422],
      ...(name === 'next' ? [] : [['/throws', 500] as const]),
      ['/unchanged', 304],
      ['/moved', 303],
      ['/huge', 500],
    ] as const
    for (const [path, status] of unsold) {
      const response = await app(at.shop.url + path, { headers: v2() })
      expect([path, response.status]).toEqual([path, status])
      expect(varyOf(response.raw), path).toContain('origin')
    }
    expect(at.fake.calls('/settle')).toHaveLength(0)
  })

  test('a script reads when to come again', async () => {
    await open()
    at.fake.script('/verify', duplicate)
    at.fake.script('/redeem', problem(409, 'delivery-in-progress', {}, { 'retry-after': '30' }))
    const waiting = await app(`${at.shop.url}/paid`, { headers: v2() })
    expect([waiting.status, waiting.header('retry-after')]).toEqual([409, '30'])
    at.fake.script('/verify', problem(503, 'chain-unavailable'))
    const away = await app(`${at.shop.url}/paid`, { headers: v2() })
    expect([away.status, away.header('retry-after')]).toEqual([503, '5'])
  })

  test('Vary names every header on which a response depends, for every origin', async () => {
    await open()
    const own = name === 'next' ? [] : ['accept-encoding']
    const unpaid = await fetch(`${at.shop.url}/paid`)
    expect(varyOf(unpaid.headers)).toEqual(expect.arrayContaining([...own, 'origin']))
    const bought = await app(`${at.shop.url}/paid`, { headers: v2() })
    expect(varyOf(bought.raw)).toEqual(expect.arrayContaining([ofHandler, 'origin']))
    expect(bought.raw.get('vary')?.match(/origin/gi)).toHaveLength(1)
    const preflight = await fetch(`${at.shop.url}/paid`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.test',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'x-a',
      },
    })
    expect(varyOf(preflight.headers)).toEqual(
      expect.arrayContaining([...own, 'origin', 'access-control-request-headers']),
    )
  })

  test('a kept answer is readable by the origin that fetches it, not by the one that paid', async () => {
    await open()
    const credential = v2()
    const good = { status: 200, body: verification({ redeemable: true }) }
    at.fake.script('/verify', good, duplicate)
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    expect((await app(`${at.shop.url}/paid`, { headers: credential })).status).toBe(503)
    at.fake.script('/settle', { status: 200, body: { txHash: '0x1', settledAt: '2026-11-21T00:00:09.000Z' } })
    at.fake.script('/redeem', { status: 200, body: verification({ redemptionToken: 'right', expiresIn: 60 }) })
    const served = await other(`${at.shop.url}/paid`, { headers: credential })
    expect([served.status, JSON.parse(served.text)]).toEqual([200, goods])
    expect(varyOf(served.raw)).toContain(ofHandler)
  })

  test('free methods are readable, and without CORS options the headers are the provider’s own', async () => {
    await at.open({ pay: { cors: { origins }, freeMethods: ['GET'] } })
    const free = await app(`${at.shop.url}/slow`)
    expect([free.status, varyOf(free.raw).includes('origin')]).toEqual([200, true])
    await at.open({})
    const plain = await at.buy(v2(), '/fails')
    expect([
      plain.status,
      plain.headers.has('access-control-allow-origin'),
      varyOf(plain.headers).includes('origin'),
    ]).toEqual([422, false, false])
  })
})
