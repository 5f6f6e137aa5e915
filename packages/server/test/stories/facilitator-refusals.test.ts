import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/platform/db/db.ts'
import { aPaymentBody, asV1, type FacilitatorBody, facilitatorOf } from '../facilitated.ts'
import { aPayer, aWorld, type DevChain, type Org, type Payer, startChain, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: string }
let good: FacilitatorBody

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
  good = await pay()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const pay = () => aPaymentBody(world, org, { payer, wallet })

/** The members that official clients parse in every answer: without them they throw the raw body at the buyer. */
function membersOf(verb: string, body: Record<string, unknown>): unknown {
  if (verb === 'verify') return [body.isValid, typeof body.invalidReason]
  return [body.success, typeof body.errorReason, body.transaction, typeof body.network]
}

const refusedAs = { verify: [false, 'string'], settle: [false, 'string', '', 'string'] }

interface Raw {
  readonly key?: string
  readonly type?: string
  readonly body?: string
}

async function send(verb: string, { key = org.testKey, type = 'application/json', body = JSON.stringify(good) }: Raw) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': type }
  const response = await fetch(`${world.base}/facilitator/${verb}`, { method: 'POST', headers, body })
  return { status: response.status, body: await response.json() }
}

test.each(['verify', 'settle'] as const)(
  'every refusal of %s, whichever layer it comes from, is an answer of the protocol',
  async (verb) => {
    const full = await world.organisation('hobby')
    const month = world.server.deps.clock.now().toISOString().slice(0, 7)
    await world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${full.id}, 'test', 'payments', ${month}, 1000000)
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
    const cases: readonly (readonly [status: number, raw: Raw])[] = [
      [401, { key: 'svc_test_sk_nobody' }],
      [401, { key: '' }],
      [415, { type: 'text/plain' }],
      [400, { body: '{"x402Version":2,' }],
      [400, { body: '' }],
      [422, { body: '[]' }],
      [413, { body: JSON.stringify({ ...good, more: 'x'.repeat(3_000_000) }) }],
      [429, { key: full.testKey }],
    ]
    for (const [status, raw] of cases) {
      const response = await send(verb, raw)
      const shown = [Object.keys(raw), response.status, membersOf(verb, response.body)]
      expect(shown).toEqual([Object.keys(raw), response.body.status ?? status, refusedAs[verb]])
      expect(response.status, JSON.stringify(raw).slice(0, 80)).toBeGreaterThanOrEqual(400)
    }
  },
)

test.each([
  ['a NUL in the resource', (body: FacilitatorBody) => within(body, { resource: { url: 'https://a.example/\u0000' } })],
  [
    'a lone surrogate in the description',
    (body: FacilitatorBody) => within(body, { resource: { url: 'https://a.example/', description: '\udc00x' } }),
  ],
  ['a NUL in a name', (body: FacilitatorBody) => within(body, { 'a\u0000b': 1 })],
  [
    'a lone surrogate in an extension',
    (body: FacilitatorBody) => within(body, { extensions: { deep: [{ x: '\ud83d' }] } }),
  ],
])('%s is an invalid payload, and nothing is recorded', async (_, change) => {
  const own = await pay()
  const facilitator = facilitatorOf(world.base, org.testKey)
  const body = change(own)
  expect([(await facilitator.verify(body)).status, (await facilitator.verify(body)).body]).toMatchObject([
    200,
    { isValid: false, invalidReason: 'invalid_payload' },
  ])
  expect((await facilitator.settle(body)).body).toMatchObject({ success: false, errorReason: 'invalid_payload' })
  expect((await facilitator.verify(own)).body.isValid).toBe(true)
})

function within(body: FacilitatorBody, change: object): FacilitatorBody {
  return { ...body, paymentPayload: { ...body.paymentPayload, ...change } }
}

test.each([1, 2])(
  'version %d accepts exactly the price: one unit more or less, or three times as much, is refused',
  async (version) => {
    const facilitator = facilitatorOf(world.base, org.testKey)
    for (const value of ['10001', '9999', '30000']) {
      const made = await aPaymentBody(world, org, { payer, wallet, changes: { sign: { value } } })
      const body = version === 1 ? asV1(made) : made
      for (const response of [await facilitator.verify(body), await facilitator.settle(body)])
        expect([value, response.status, response.body.isValid ?? response.body.success]).toEqual([value, 200, false])
    }
  },
)
