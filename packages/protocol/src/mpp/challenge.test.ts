import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { Challenge, PaymentRequest } from 'mppx'
import { expect, test } from 'vitest'
import { challenge, jsonObject } from '../../test/mpp-challenges.ts'
import vectors from '../vectors/mpp-challenge.json' with { type: 'json' }
import { challengeBinding, formatChallenge, formatChallenges, type MppChallenge } from './challenge.ts'
import { parseChallenges } from './challenge-header.ts'
import { decodeMppJson, encodeMppJson } from './encoding.ts'

const secretKey = 'a secret of thirty-two bytes or more'
const base: MppChallenge = { id: 'i', realm: 'r', method: 'tempo', intent: 'charge', request: 'e30' }

test('each challenge of the vectors is written as mppx wrote it and read back', () => {
  expect(vectors.challenges.length).toBe(4)
  for (const { name, challenge: written, requestObject, header } of vectors.challenges) {
    expect(formatChallenge(written), name).toBe(header)
    expect(parseChallenges(header), name).toEqual([written])
    expect(encodeMppJson(requestObject), name).toBe(written.request)
  }
})

test('each id of the vectors is the HMAC of the binding, and changes with every bound member', () => {
  for (const { name, challenge: written, secret } of vectors.challenges) {
    const { id, ...rest } = written
    expect(hmac(secret, challengeBinding(rest)), name).toBe(id)
    for (const member of ['realm', 'method', 'intent', 'request', 'expires', 'digest', 'opaque', 'header'] as const)
      expect(hmac(secret, challengeBinding({ ...rest, [member]: 'other' })), `${name}: ${member}`).not.toBe(id)
    expect(hmac(secret, challengeBinding({ ...rest, description: 'other' })), name).toBe(id)
  }
})

test('the id that mppx gives a challenge is the HMAC over the binding under the same secret', () => {
  fc.assert(
    fc.property(challenge, (given) => {
      const official = Challenge.from({ ...withoutId(given), secretKey })
      expect(hmac(secretKey, challengeBinding(given))).toBe(official.id)
      expect(Challenge.verify({ ...official, id: hmac(secretKey, challengeBinding(given)) }, { secretKey })).toBe(true)
    }),
  )
})

test('a challenge is written as mppx writes it, and mppx reads several in one value as they were', () => {
  fc.assert(
    fc.property(fc.array(challenge, { minLength: 1, maxLength: 6 }), (list) => {
      for (const given of list) expect(formatChallenge(given)).toBe(Challenge.serialize(officialOf(given)))
      const read = Challenge.deserializeList(formatChallenges(list))
      expect(read.map(oursOf)).toEqual(list.map((given) => ({ ...given })))
    }),
  )
})

test('a header that names Authorization is the same as none, in the value and in the binding', () => {
  for (const header of ['Authorization', 'authorization', '']) {
    expect(formatChallenge({ ...base, header })).toBe(formatChallenge(base))
    expect(challengeBinding({ ...base, header })).toBe(challengeBinding(base))
  }
  expect(challengeBinding({ ...base, header: 'Payment-Authorization' })).toBe(
    'r|tempo|charge|e30|||Payment-Authorization|',
  )
})

test('a challenge that would break the header is not written', () => {
  for (const description of ['a\r\nSet-Cookie: x=1', 'a\nb', 'a\u0000b', 'a\u007fb'])
    expect(() => formatChallenge({ ...base, description })).toThrow(RangeError)
  expect(formatChallenge({ ...base, description: 'a\tb' })).toContain('description="a\tb"')
})

test('a request is encoded as mppx encodes it, byte for byte, and read back', () => {
  fc.assert(
    fc.property(jsonObject, (object) => {
      expect(encodeMppJson(object)).toBe(PaymentRequest.serialize(object))
      expect(decodeMppJson(encodeMppJson(object))).toEqual(JSON.parse(JSON.stringify(object)))
    }),
  )
})

test('what is not base64url of a JSON object of at most 16 KiB is not a request', () => {
  expect(decodeMppJson('e30')).toEqual({})
  expect(decodeMppJson('e30=')).toEqual({})
  for (const json of ['[]', 'null', '1', '"x"', '{', '', '{}}'])
    expect(decodeMppJson(Buffer.from(json).toString('base64url')), json).toBeUndefined()
  for (const text of ['e3', 'e30==!', 'e 30', '{}', 'gICA', 'ww']) expect(decodeMppJson(text), text).toBeUndefined()
  const long = (size: number) => Buffer.from(`{"a":"${'x'.repeat(size)}"}`).toString('base64url')
  expect(decodeMppJson(long(12_280))).toBeDefined()
  expect(decodeMppJson(long(12_281))).toBeUndefined()
})

function hmac(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url')
}

/** Our challenge as mppx's `Challenge.from` takes one. */
function withoutId(given: MppChallenge) {
  const { realm, method, intent, expires, digest, description, opaque, header } = given
  const request = PaymentRequest.deserialize(given.request)
  return { realm, method, intent, expires, digest, description, opaque, header, request }
}

function officialOf(given: MppChallenge) {
  return Challenge.from({ ...withoutId(given), id: given.id })
}

function oursOf({ request, ...rest }: Challenge.Challenge): MppChallenge {
  const { id, realm, method, intent, expires, digest, description, opaque, header } = rest
  return {
    id,
    realm,
    method,
    intent,
    request: PaymentRequest.serialize(request),
    expires,
    digest,
    description,
    opaque,
    header,
  }
}
