import { createHmac, createPrivateKey, sign } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bytesToHex, hexToBytes } from './bytes.ts'
import { utf8 } from './utf8.ts'
import vectors from './vectors/webhook-signatures.json' with { type: 'json' }
import { composeWebhookSecret, parseWebhookSecret } from './webhook-secret.ts'
import { createWebhookSigner, hmacSha256, type SignEd25519, signWebhook } from './webhook-signature.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const body = utf8('{}')

function bodyOf(vector: { body?: string; bodyHex?: string }): Uint8Array {
  return vector.body === undefined ? hexToBytes(`0x${vector.bodyHex}`) : utf8(vector.body)
}

function signerOf(seed: string): SignEd25519 {
  const der = Buffer.from(`302e020100300506032b657004220420${seed}`, 'hex')
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return (message) => new Uint8Array(sign(null, message, key))
}

test.each(vectors.sign)('$name is signed as the vector says', (vector) => {
  const { id, timestamp, secrets, ed25519Seed, headers } = vector
  const signEd25519 = ed25519Seed === undefined ? undefined : signerOf(ed25519Seed)
  expect(signWebhook({ id, timestamp, body: bodyOf(vector) }, { secrets, signEd25519 })).toEqual(headers)
})

test('the first vector is the one that Standard Webhooks publishes', () => {
  expect(vectors.sign[0]).toMatchObject({
    secrets: [secret],
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1614265330,
    body: '{"test": 2432232314}',
    headers: { 'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=' },
  })
})

test('a faster HMAC gives the same headers', () => {
  const native = (key: Uint8Array, message: Uint8Array) => createHmac('sha256', key).update(message).digest()
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 24, maxLength: 64 }), fc.uint8Array({ maxLength: 300 }), (random, sent) => {
      const message = { id: 'evt_1', timestamp: 1_795_262_400, body: sent }
      const secrets = [composeWebhookSecret(random)]
      expect(signWebhook(message, { secrets, hmac: native })).toEqual(signWebhook(message, { secrets }))
      expect(bytesToHex(hmacSha256(random, sent))).toBe(bytesToHex(native(random, sent)))
    }),
  )
})

test.each([
  ['no secret', [], 'evt_1', 1],
  ['a malformed secret', ['secret'], 'evt_1', 1],
  ['an id with a dot', [secret], 'a.b', 1],
  ['a timestamp in parts of seconds', [secret], 'evt_1', 1.5],
])('a signer refuses %s as signWebhook does', (_, secrets, id, timestamp) => {
  const text = utf8('a.b.1.{}')
  expect(() => createWebhookSigner(secrets)({ id, timestamp, text })).toThrow(RangeError)
  expect(() => signWebhook({ id, timestamp, body }, { secrets })).toThrow(RangeError)
})

test.each(['', 'a.b', 'evt_1\n', 'evt 1', 'é', 'e'.repeat(129)])('the id %j is not signed', (id) => {
  expect(() => signWebhook({ id, timestamp: 1, body }, { secrets: [secret] })).toThrow(RangeError)
})

test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e21, 1e12])(
  'the timestamp %s is not signed',
  (timestamp) => {
    expect(() => signWebhook({ id: 'evt_1', timestamp, body }, { secrets: [secret] })).toThrow(RangeError)
  },
)

test('nothing is signed without a secret, or with one that is malformed', () => {
  const message = { id: 'evt_1', timestamp: 1, body }
  expect(() => signWebhook(message, { secrets: [] })).toThrow(RangeError)
  expect(() => signWebhook(message, { secrets: [secret, secret.slice(0, -1)] })).toThrow(RangeError)
})

test.each(vectors.secrets)('the secret $text is read as the vector says', ({ text, bytesHex }) => {
  const bytes = parseWebhookSecret(text)
  expect(bytes === undefined ? null : bytesToHex(bytes).slice(2)).toBe(bytesHex)
})

test('a secret is written for 24 to 64 bytes, and read back as them', () => {
  for (let size = 0; size < 100; size++) {
    const random = new Uint8Array(size).fill(size)
    if (size < 24 || size > 64) expect(() => composeWebhookSecret(random)).toThrow(RangeError)
    else expect(parseWebhookSecret(composeWebhookSecret(random))).toEqual(random)
  }
})

test('no message of a refusal shows a secret', () => {
  const short = 'whsec_c2hvcnQgc2VjcmV0'
  expect(() => signWebhook({ id: 'evt_1', timestamp: 1, body }, { secrets: [short] })).toThrow(/^(?!.*c2hvcnQ)/)
})
