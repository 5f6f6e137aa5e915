import { createPublicKey, verify } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hexToBytes } from './bytes.ts'
import { utf8 } from './utf8.ts'
import vectors from './vectors/webhook-signatures.json' with { type: 'json' }
import { composeWebhookSecret } from './webhook-secret.ts'
import { signWebhook } from './webhook-signature.ts'
import { verifyServiceWebhook, verifyStandardWebhook, verifyWebhookByKey, type WebhookFault } from './webhook-verify.ts'

type Vector = (typeof vectors.verify)[number]

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

function verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString('base64url')
  return verify(null, message, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature)
}

function faultOf(vector: Vector): WebhookFault | undefined | Promise<WebhookFault | undefined> {
  const { id = '', timestamp, signature, body: text, bodyHex, nowSeconds, toleranceSeconds } = vector
  const received = { id, timestamp, signature, body: text === undefined ? hexToBytes(`0x${bodyHex}`) : utf8(text) }
  const moment = { nowSeconds, toleranceSeconds }
  if (vector.form === 'service') return verifyServiceWebhook(received, vector.secrets ?? [], moment)
  if (vector.form === 'standard') return verifyStandardWebhook(received, vector.secrets ?? [], moment)
  const keys = (vector.publicKeys ?? []).map((key) => hexToBytes(`0x${key}`))
  return verifyWebhookByKey(received, keys, moment, verifyEd25519)
}

test.each(vectors.verify)('$form: $name is judged as the vector says', async (vector) => {
  expect((await faultOf(vector)) ?? 'accepted').toBe(vector.verdict)
})

test('the vectors hold acceptances and every fault in each form', () => {
  const verdicts = (form: string) =>
    new Set(vectors.verify.filter((vector) => vector.form === form).map(({ verdict }) => verdict))
  const timely = ['timestamp-malformed', 'timestamp-too-old', 'timestamp-too-new']
  expect(verdicts('standard')).toEqual(
    new Set(['accepted', 'id-malformed', 'signature-malformed', 'signature-mismatch', ...timely]),
  )
  expect(verdicts('service')).toEqual(new Set(['accepted', 'signature-malformed', 'signature-mismatch', ...timely]))
})

test('whatever is signed is accepted in both forms, and one changed bit of the body is not', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 24, maxLength: 64 }), { minLength: 1, maxLength: 3 }),
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.nat(),
      (randoms, body, at) => {
        const secrets = randoms.map(composeWebhookSecret)
        const headers = signWebhook({ id: 'evt_1', timestamp: 1_795_262_400, body }, { secrets })
        const own = { timestamp: headers['x-service-timestamp'], signature: headers['x-service-signature'] }
        const standard = { id: 'evt_1', timestamp: own.timestamp, signature: headers['webhook-signature'] }
        const moment = { nowSeconds: 1_795_262_400.9 }
        const changed = body.map((byte, i) => (i === at % body.length ? byte ^ (1 << (at & 7)) : byte))
        for (const secret of secrets) {
          expect(verifyServiceWebhook({ ...own, body }, [secret], moment)).toBeUndefined()
          expect(verifyStandardWebhook({ ...standard, body }, [secret], moment)).toBeUndefined()
          expect(verifyServiceWebhook({ ...own, body: changed }, [secret], moment)).toBe('signature-mismatch')
          expect(verifyStandardWebhook({ ...standard, body: changed }, [secret], moment)).toBe('signature-mismatch')
        }
      },
    ),
  )
})

test('no text as a header makes a verifier throw or accept', () => {
  const anything = fc.string({ unit: 'binary', maxLength: 200 })
  const id = fc.oneof(anything, fc.constant('evt_1'))
  const timestamp = fc.oneof(anything, fc.constant('1'))
  const piece = fc.constantFrom('v1,', 'v1a,', 'sha256=', ' ', ',', '=', 'A', '00'.repeat(32), `${'A'.repeat(43)}=`)
  const signature = fc.oneof(
    anything,
    fc.array(piece, { maxLength: 9 }).map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(id, timestamp, signature, (id, timestamp, signature) => {
      const received = { id, timestamp, signature, body: utf8('{}') }
      expect(verifyServiceWebhook(received, [secret], { nowSeconds: 1 })).toBeTypeOf('string')
      expect(verifyStandardWebhook(received, [secret], { nowSeconds: 1 })).toBeTypeOf('string')
    }),
  )
})

test('a verifier without a secret, with a malformed one or without a time refuses to judge', async () => {
  const received = { id: 'evt_1', timestamp: '1', signature: 'v1,AAAA', body: utf8('{}') }
  const moment = { nowSeconds: 1 }
  for (const judge of [verifyServiceWebhook, verifyStandardWebhook]) {
    expect(() => judge(received, [], moment)).toThrow(RangeError)
    expect(() => judge(received, [''], moment)).toThrow(RangeError)
    expect(() => judge(received, [secret, 'whsec_'], moment)).toThrow(RangeError)
    expect(() => judge(received, [secret], { nowSeconds: Number.NaN })).toThrow(RangeError)
    for (const toleranceSeconds of [Number.NaN, Number.POSITIVE_INFINITY, -1])
      expect(() => judge(received, [secret], { ...moment, toleranceSeconds })).toThrow(RangeError)
  }
  await expect(verifyWebhookByKey(received, [], moment, verifyEd25519)).rejects.toThrow(RangeError)
  await expect(verifyWebhookByKey(received, [new Uint8Array(31)], moment, verifyEd25519)).rejects.toThrow(RangeError)
})
