import { createHash, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bridgeWebhookMsMax, isSigned, readBridgeDelivery } from './bridge-webhook.ts'
import vector from './vectors/bridge-webhook.json' with { type: 'json' }

const [, time = '', signature = ''] = /^t=(\d+),v0=(.+)$/.exec(vector.header) ?? []
const publishedKey = createPublicKey(vector.publicKey)
const publishedBody = Buffer.from(vector.body)

test('Bridge’s published example verifies with its published key', () => {
  expect(isSigned(publishedKey, { time, signature, body: publishedBody })).toBe(true)
})

test('Bridge’s published example needs the hash applied twice', () => {
  const data = Buffer.from(`${time}.${vector.body}`)
  expect(verify('RSA-SHA256', data, publishedKey, Buffer.from(signature, 'base64'))).toBe(false)
})

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const now = new Date('2026-11-22T00:00:00Z')
const event = JSON.stringify({
  api_version: 'v0',
  event_id: 'wh_t8TAhPPYrRV2v8Asi9ed3sw',
  event_category: 'transfer',
  event_type: 'updated.status_transitioned',
  event_object_id: 'transfer_123',
  event_object_status: 'payment_processed',
  event_object: { amount: 50.0 },
})

function headerFor(body: string, at = now): string {
  const digest = createHash('sha256').update(`${at.getTime()}.${body}`).digest()
  return `t=${at.getTime()},v0=${sign('RSA-SHA256', digest, privateKey).toString('base64')}`
}
const read = (header: string | undefined, body: string) =>
  readBridgeDelivery(publicKey, { header, body: Buffer.from(body), now })

test('a delivery returns its event id, category and object id', () => {
  expect(read(headerFor(event), event)).toEqual({
    ok: true,
    eventId: 'wh_t8TAhPPYrRV2v8Asi9ed3sw',
    category: 'transfer',
    objectId: 'transfer_123',
  })
})

test('the signature covers the bytes: equal JSON in another format does not verify', () => {
  const spaced = event.replace('50', '50.00')
  expect(JSON.parse(spaced)).toEqual(JSON.parse(event))
  expect(read(headerFor(event), spaced)).toEqual({ ok: false, fault: 'wrong-signature' })
  expect(read(headerFor(spaced), spaced)).toMatchObject({ ok: true })
})

test.each([
  [bridgeWebhookMsMax, true],
  [bridgeWebhookMsMax + 1, false],
  [-bridgeWebhookMsMax, true],
  [-bridgeWebhookMsMax - 1, false],
])('a delivery that is %d ms old is accepted: %s', (ageMs, taken) => {
  const header = headerFor(event, new Date(now.getTime() - ageMs))
  expect(read(header, event)).toEqual(taken ? expect.objectContaining({ ok: true }) : { ok: false, fault: 'too-old' })
})

test('an old delivery cannot be renewed by changing the time in its header', () => {
  const old = headerFor(event, new Date(now.getTime() - 86_400_000))
  const renewed = old.replace(/t=\d+/, `t=${now.getTime()}`)
  expect(read(renewed, event)).toEqual({ ok: false, fault: 'wrong-signature' })
})

test('arbitrary headers and bodies are never accepted unsigned and never throw', () => {
  fc.assert(
    fc.property(fc.option(fc.string(), { nil: undefined }), fc.string(), (header, body) => {
      expect(read(header, body).ok).toBe(false)
    }),
  )
  fc.assert(
    fc.property(fc.base64String({ minLength: 4, maxLength: 400 }), (bytes) => {
      expect(read(`t=${now.getTime()},v0=${bytes}`, event).ok).toBe(false)
    }),
  )
})

test('a signed message that is not an event is malformed', () => {
  for (const body of ['', '7', 'null', '{"event_id":"x"}'])
    expect(read(headerFor(body), body)).toEqual({ ok: false, fault: 'malformed' })
})
