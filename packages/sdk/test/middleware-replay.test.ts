import { describe, expect, test } from 'vitest'
import { problem, verification } from './fake-purser.ts'
import { goods } from './shops.ts'
import { frameworks, header, named, stageOf, v2 } from './stage.ts'

let serial = 0
const newId = () => `pay_of_the_caller_${++serial}`

describe.each(frameworks)('%s', (_name, openShop) => {
  const at = stageOf(openShop)

  test('a payer with a payment identifier who lost the response gets it again, and pays once', async () => {
    const credential = named(newId())
    const first = await at.buy(credential)
    const again = await at.buy(credential)
    expect([again.status, await again.json()]).toEqual([200, goods])
    const names = ['content-type', 'cache-control', 'payment-response', 'x-leak', 'access-control-expose-headers']
    for (const name of names) expect([name, header(again, name)]).toEqual([name, header(first, name)])
    expect(first.headers.has('payment-replayed')).toBe(false)
    expect(header(again, 'payment-replayed')).toBe('true')
    expect(at.shop.runs).toHaveLength(1)
    expect(at.fake.calls('/verify')).toHaveLength(1)
    expect(at.fake.calls('/settle')).toHaveLength(1)
  })

  test('a streamed answer is replayed byte for byte', async () => {
    const credential = named(newId())
    const first = await (await at.buy(credential, '/streams')).text()
    const again = await at.buy(credential, '/streams')
    expect(header(again, 'payment-replayed')).toBe('true')
    expect((await again.text()) === first && first.length === 4 * 65_536).toBe(true)
  })

  test('the name with another credential, another address or another method is 409 and runs nothing', async () => {
    const id = newId()
    const credential = named(id)
    await at.buy(credential)
    const others = [
      await at.buy(named(id)),
      await at.buy(credential, '/paid?more=1'),
      await fetch(`${at.shop.url}/paid`, { method: 'POST', headers: credential }),
    ]
    expect(others.map(({ status }) => status)).toEqual([409, 409, 409])
    expect(await others[0]?.json()).toMatchObject({ code: 'payment-identifier-conflict' })
    expect(at.shop.runs).toHaveLength(1)
  })

  test('a name that Purser knows for another payment is 409 as well, and not an outage', async () => {
    at.fake.script('/verify', problem(409, 'payment-identifier-conflict'))
    const response = await at.buy(named(newId()))
    expect([response.status, at.shop.faults]).toEqual([409, []])
    expect(await response.json()).toMatchObject({ code: 'payment-identifier-conflict' })
  })

  test('two credentials of one name at once: one is sold', async () => {
    const id = newId()
    at.fake.script('/verify', { status: 200, body: verification({}) }, problem(409, 'payment-identifier-conflict'))
    const answers = await Promise.all([at.buy(named(id)), at.buy(named(id))])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(at.shop.runs).toHaveLength(1)
  })

  test('a repeat of a payment without a name, or with one that is none, stays 409', async () => {
    for (const credential of [v2(), named('too short'), named('x'.repeat(129))]) {
      expect((await at.buy(credential)).status).toBe(200)
      expect((await at.buy(credential)).status).toBe(409)
    }
  })

  test.each(['/fails', '/throws', '/nowhere'])('a handler that fails at %s gives the name back', async (path) => {
    const id = newId()
    expect((await at.buy(named(id), path)).status).toBeGreaterThanOrEqual(400)
    expect((await at.buy(named(id))).status).toBe(200)
  })

  test('a payment that was refused or certainly not settled gives the name back', async () => {
    const id = newId()
    at.fake.script('/verify', problem(402, 'payment-verification-failed', { reason: 'invalid_exact_evm_signature' }))
    expect((await at.buy(named(id))).status).toBe(402)
    at.fake.script('/verify')
    at.fake.script('/settle', problem(409, 'settlement-failed'))
    expect((await at.buy(named(id))).status).toBe(402)
    at.fake.script('/settle')
    expect((await at.buy(named(id))).status).toBe(200)
  })

  test('while nobody knows whether the payment was settled its name cannot be paid again', async () => {
    const id = newId()
    at.fake.script('/settle', problem(503, 'chain-unavailable'))
    expect((await at.buy(named(id))).status).toBe(503)
    at.fake.script('/settle')
    at.fake.script('/verify', problem(409, 'payment-identifier-conflict'))
    expect((await at.buy(named(id))).status).toBe(409)
    expect(at.shop.runs).toHaveLength(1)
  })

  test('with replayTtlMs 0 no answer is kept', async () => {
    await at.open({ wallet: { replayTtlMs: 0 } })
    const credential = named(newId())
    await at.buy(credential)
    expect((await at.buy(credential)).status).toBe(409)
  })
})
