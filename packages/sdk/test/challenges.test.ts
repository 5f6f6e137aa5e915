import { expect, test } from 'vitest'
import { createPurser } from '../src/client.ts'
import { challengesAhead } from '../src/middleware/challenges.ts'

const requested = { walletId: 'byw_1', resource: 'http://shop.test/paid', price: '0.01' }
const hour = 3_600_000

/** A Purser that answers batches from memory, each challenge with a number of its own, and waits to be let go. */
function aPurser(lifeMs = hour) {
  let serial = 0
  const batches: number[] = []
  const gate = Promise.withResolvers<void>()
  let open: Promise<void> = Promise.resolve()
  const response = async (_input: unknown, init?: RequestInit): Promise<Response> => {
    const { count = 1 }: { count?: number } = JSON.parse(String(init?.body))
    batches.push(count)
    await open
    const expiresAt = new Date(Date.now() + lifeMs).toISOString()
    const mpp = Array.from({ length: count }, () => `Payment id="${++serial}"`)
    return Response.json({ x402: null, x402V1: null, mpp, expiresAt })
  }
  return {
    purser: createPurser({ apiKey: `svc_test_sk_${'a'.repeat(49)}`, baseUrl: 'https://purser.test', fetch: response }),
    batches,
    hold: () => {
      open = gate.promise
    },
    letGo: () => gate.resolve(),
  }
}

test('many payers who find no challenge wait for one batch, and no two are shown the same', async () => {
  const { purser, batches, hold, letGo } = aPurser()
  hold()
  const take = challengesAhead(purser, 50)
  const taking = Array.from({ length: 40 }, () => take(requested))
  letGo()
  const shown = await Promise.all(taking)
  expect(new Set(shown.map(({ mpp }) => mpp)).size).toBe(40)
  expect(batches).toEqual([50])
})

test('more payers than a batch has challenges are all served, each with their own challenge', async () => {
  const { purser } = aPurser()
  const take = challengesAhead(purser, 10)
  const shown = await Promise.all(Array.from({ length: 95 }, () => take(requested)))
  expect(new Set(shown.map(({ mpp }) => mpp)).size).toBe(95)
})

test('the next batch is fetched while half of the last is there, one at a time', async () => {
  const { purser, batches } = aPurser()
  const take = challengesAhead(purser, 10)
  for (let call = 0; call < 5; call += 1) await take(requested)
  expect(batches).toEqual([10])
  await Promise.all([take(requested), take(requested), take(requested)])
  expect(batches).toEqual([10, 10])
})

test('a caller who varies the query makes the provider keep ten thousand challenges and no more', async () => {
  const { purser, batches } = aPurser()
  const take = challengesAhead(purser, 100)
  const visit = (route: number) => take({ ...requested, resource: `${requested.resource}?q=${route}` })
  for (let route = 0; route < 100; route += 1) await visit(route)
  await visit(0)
  expect(batches).toHaveLength(100)
  await visit(100)
  await visit(0)
  expect(batches).toHaveLength(102)
})

test('a provider whose clock is far off still sells: a challenge that came this instant is not thrown away', async () => {
  const { purser, batches } = aPurser(-hour)
  const take = challengesAhead(purser, 5)
  expect((await take(requested)).mpp).toBeDefined()
  expect(batches).toEqual([5])
})

test('an error of Purser reaches the waiting payer, and the next payer requests anew', async () => {
  let calls = 0
  const response = async (): Promise<Response> => {
    calls += 1
    if (calls === 1) return Response.json({ title: 'no', status: 422 }, { status: 422 })
    const expiresAt = new Date(Date.now() + hour).toISOString()
    return Response.json({ x402: null, x402V1: null, mpp: ['Payment id="1"', 'Payment id="2"'], expiresAt })
  }
  const options = { apiKey: `svc_test_sk_${'a'.repeat(49)}`, baseUrl: 'https://purser.test', fetch: response }
  const take = challengesAhead(createPurser(options), 2)
  await expect(take(requested)).rejects.toThrow()
  expect((await take(requested)).mpp).toBe('Payment id="2"')
})
