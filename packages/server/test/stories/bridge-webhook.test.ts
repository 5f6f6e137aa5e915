import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../src/config.ts'
import { deleteExpiredPayoutHints } from '../../src/features/withdrawals/index.ts'
import { instantOf } from '../../src/platform/clock.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aWorld, parseAnswer, type World } from '../world.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const webhookPublicKey = publicKey.export({ type: 'spki', format: 'pem' }).toString()
const bridge = { baseUrl: 'http://127.0.0.1:9', apiKey: 'k', webhookPublicKey }

let world: World
beforeAll(async () => {
  world = await aWorld({ config: { partners: { bridge } } })
})
afterAll(async () => {
  await world?.stop()
})

const path = '/partners/bridge/webhooks'
const eventOf = (objectId: string, category = 'transfer') =>
  JSON.stringify({ event_id: `wh_${objectId}`, event_category: category, event_object_id: objectId })

async function deliver(body: string, changes: { readonly signed?: string; readonly ageMs?: number } = {}) {
  const time = Date.now() - (changes.ageMs ?? 0)
  const digest = createHash('sha256')
    .update(`${time}.${changes.signed ?? body}`)
    .digest()
  const signature = sign('RSA-SHA256', digest, privateKey).toString('base64')
  const headers = { 'content-type': 'application/json', 'x-webhook-signature': `t=${time},v0=${signature}` }
  return parseAnswer(await fetch(world.base + path, { method: 'POST', headers, body }))
}

const Hint = z.object({ payoutId: z.string() })
const hints = async () =>
  (await world.database.db.many(Hint, sql`select payout_id from payout_hints order by payout_id`)).map(
    ({ payoutId }) => payoutId,
  )

test('a signed delivery needs no API key and stores a hint, once, however often it comes', async () => {
  const answers = await Promise.all(Array.from({ length: 10 }, () => deliver(eventOf('transfer_1'))))
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 204))
  expect(await hints()).toEqual(['transfer_1'])
})

test('an unsigned, wrongly signed or old delivery is 400, and stores nothing', async () => {
  const before = await hints()
  const refused = [
    await deliver(eventOf('transfer_2'), { signed: eventOf('transfer_1') }),
    await deliver(eventOf('transfer_2'), { ageMs: 660_000 }),
    await parseAnswer(await fetch(world.base + path, { method: 'POST', body: eventOf('transfer_2') })),
    await parseAnswer(await fetch(world.base + path, { method: 'POST' })),
  ]
  expect(refused.map(({ status, body }) => [status, body.reason])).toEqual([
    [400, 'wrong-signature'],
    [400, 'too-old'],
    [400, 'malformed'],
    [400, 'malformed'],
  ])
  expect(await hints()).toEqual(before)
})

test('events of other kinds are accepted, so that Bridge sends them once, and change nothing', async () => {
  const before = await hints()
  expect((await deliver(eventOf('cust_1', 'customer'))).status).toBe(204)
  expect(await hints()).toEqual(before)
})

test('hints are deleted after a week', async () => {
  await deliver(eventOf('transfer_3'))
  const { deps } = world.server
  const later = (days: number) => ({ ...deps, clock: { now: () => instantOf(Date.now() + days * 86_400_000) } })
  const sweep = (days: number) => deleteExpiredPayoutHints.run(later(days) as never)
  await sweep(6)
  expect(await hints()).toContain('transfer_3')
  await sweep(8)
  expect(await hints()).toEqual([])
})

test('where Bridge is not configured its address is 404', async () => {
  const without = await world.another({ partners: {} })
  expect((await fetch(without.base + path, { method: 'POST', body: '{}' })).status).toBe(404)
})

test('every fault of the partners’ settings is named at once', () => {
  const config = readConfig(
    {
      BRIDGE_WEBHOOK_PUBLIC_KEY: 'no key',
      RELAY_API_KEY: 'with space',
      LIFI_API_URL: 'ftp://lifi',
    },
    [],
    [],
  )
  const named = 'faults' in config ? config.faults.map(({ name }) => name) : []
  expect(named).toEqual(expect.arrayContaining(['BRIDGE_WEBHOOK_PUBLIC_KEY', 'RELAY_API_KEY', 'LIFI_API_URL']))
  const good = readConfig(
    {
      DATABASE_URL: 'postgres://a',
      DATABASE_DURABILITY: 'single',
      BASE_URL: 'http://a',
      DASHBOARD_URL: 'http://a',
      FILES_DIR: '/a',
      KEY_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
      BRIDGE_API_KEY: 'k',
      BRIDGE_WEBHOOK_PUBLIC_KEY: webhookPublicKey.replaceAll('\n', '\\n'),
      LIFI_API_KEY: 'l',
    },
    [],
    [],
  )
  expect(good).toMatchObject({
    partners: {
      bridge: { baseUrl: 'https://api.bridge.xyz/v0', webhookPublicKey },
      lifi: { baseUrl: 'https://li.quest/v1', apiKey: 'l' },
    },
  })
})
