import vectors from '@purser/protocol/vectors/webhook-signatures.json' with { type: 'json' }
import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { testHeaders, unwrap, WebhookVerificationError } from '../src/webhooks/index.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const older = 'whsec_AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw='
const now = new Date('2026-11-21T12:00:00.000Z')
const body = JSON.stringify({
  eventId: 'evt_1',
  type: 'webhook.test',
  payload: { webhookId: 'wh_1', name: 'Zürich ✓' },
})

const official = { standardwebhooks: StandardWebhook, svix: SvixWebhook }
const names = ['standardwebhooks', 'svix'] as const

/** The official verifiers ask the machine for the time. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now })
})
afterEach(() => {
  vi.useRealTimers()
})

test.each(names)('%s accepts what is signed here, by either secret while they change', (name) => {
  const headers = { ...testHeaders(body, [secret, older], { eventId: 'evt_1' }) }
  for (const known of [secret, older]) {
    for (const raw of [body, Buffer.from(body)])
      expect(() => new official[name](known).verify(raw, headers)).not.toThrow()
  }
  const unknown = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  expect(() => new official[name](unknown).verify(body, headers)).toThrow('No matching signature')
})

test.each(names)('%s and this client sign every text the same, so each accepts the other', (name) => {
  const payload = fc.dictionary(fc.string(), fc.string({ unit: 'grapheme' }))
  fc.assert(
    fc.property(payload, fc.uint8Array({ minLength: 24, maxLength: 64 }), (given, random) => {
      const text = JSON.stringify({ eventId: 'evt_1', type: 'later.type', payload: given })
      const own = `whsec_${Buffer.from(random).toString('base64')}`
      const headers = testHeaders(text, own, { eventId: 'evt_1' })
      const signature = new official[name](own).sign('evt_1', now, text)
      expect(signature).toBe(headers['webhook-signature'])
      const sent = { 'webhook-id': 'evt_1', 'webhook-timestamp': headers['webhook-timestamp'] }
      expect(unwrap(text, { ...sent, 'webhook-signature': signature }, own)).toMatchObject({ sentType: 'later.type' })
    }),
  )
})

test.each(names)('%s and this client refuse a delivery of 301 seconds ago or ahead, and take one of 300', (name) => {
  for (const seconds of [-301, -300, 300, 301]) {
    const headers = { ...testHeaders(body, secret, { now: new Date(now.getTime() + seconds * 1000) }) }
    const theirs = () => new official[name](secret).verify(body, headers)
    const ours = () => unwrap(body, headers, secret)
    for (const judge of [theirs, ours]) {
      if (Math.abs(seconds) > 300) expect(judge).toThrow()
      else expect(judge).not.toThrow()
    }
  }
})

/** Where the official verifiers let pass what the vectors refuse. */
const laxer = [
  'an id of 129 characters',
  'an id with a line end',
  'seventeen signatures',
  'a header of more than 4,096 characters',
  'the right signature with a comma after it',
  'an id with a dot, by which the timestamp would move into the id',
  'a timestamp with letters after the digits',
  'a timestamp with a fraction',
  'a timestamp with a sign',
  'a timestamp with zeros in front',
  'a timestamp with a space in front',
  'a timestamp with a line end after it',
  'a timestamp twice over',
]

const comparable = vectors.verify.filter(
  ({ form, toleranceSeconds, body: text, secrets }) =>
    form === 'standard' && toleranceSeconds === undefined && text !== undefined && secrets?.length === 1,
)

test.each(names)('%s judges every vector the same, but for those where it is known to be laxer', (name) => {
  const differing = comparable.filter(({ verdict, ...vector }) => {
    vi.setSystemTime(vector.nowSeconds * 1000)
    return isAccepted(name, vector) !== (verdict === 'accepted')
  })
  expect(comparable.length).toBeGreaterThan(40)
  expect(new Set(differing.map((vector) => vector.name))).toEqual(new Set(laxer))
})

test('this client refuses every vector by its name', () => {
  const refused = vectors.verify.filter(({ form, verdict }) => form !== 'key' && verdict !== 'accepted')
  for (const vector of refused) {
    const { id, timestamp, signature, nowSeconds, toleranceSeconds } = vector
    const headers =
      vector.form === 'standard'
        ? { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
        : { 'x-service-timestamp': timestamp, 'x-service-signature': signature }
    const at = new Date(nowSeconds * 1000)
    const judge = () => unwrap(vector.body ?? '', headers, vector.secrets ?? [], { toleranceSeconds, now: at })
    expect(judge, vector.name).toThrow(expect.objectContaining({ reason: vector.verdict }))
    expect(judge).toThrow(WebhookVerificationError)
  }
  expect(refused.length).toBeGreaterThan(50)
})

function isAccepted(name: (typeof names)[number], vector: Omit<(typeof comparable)[number], 'verdict'>): boolean {
  const headers = {
    'webhook-id': vector.id ?? '',
    'webhook-timestamp': vector.timestamp,
    'webhook-signature': vector.signature,
  }
  try {
    new official[name](vector.secrets?.[0] ?? '').verify(vector.body ?? '', headers)
    return true
  } catch {
    return false
  }
}
