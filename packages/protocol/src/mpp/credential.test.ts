import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { Challenge, Credential, PaymentRequest } from 'mppx'
import { recoverTypedDataAddress } from 'viem'
import { expect, test } from 'vitest'
import { challenge, jsonObject } from '../../test/mpp-challenges.ts'
import { authorization, must } from '../../test/signed-payment.ts'
import { addressOfPublicKey, checksumAddress } from '../address.ts'
import { bytesToHex, hexToBytes, uint256Max } from '../bytes.ts'
import vectors from '../vectors/mpp-credential.json' with { type: 'json' }
import { challengeBinding, type MppChallenge } from './challenge.ts'
import {
  formatMppCredential,
  type MppCredential,
  mppCredentialLengthMax,
  mppCredentialsIn,
  parseEvmPayload,
  parseMppCredential,
  parseTempoPayload,
} from './credential.ts'
import { chargeNonce } from './evm-nonce.ts'
import { proofDigest, proofTypedData } from './proof.ts'
import { parsePayerSource } from './source.ts'

const credential: fc.Arbitrary<MppCredential> = fc.record({
  challenge: challenge.map(withoutBars),
  payload: jsonObject,
  source: fc.option(fc.string({ minLength: 1, maxLength: 80, unit: 'grapheme' }), { nil: undefined }),
})
const sample: MppCredential = {
  challenge: { id: 'i', realm: 'r', method: 'evm', intent: 'charge', request: 'e30' },
  payload: { type: 'hash', hash: `0x${'1'.repeat(64)}` },
}
const evmPayload = { type: 'authorization', ...authorization, signature: `0x${'ab'.repeat(65)}` }

test('each credential of the vectors is read as it was meant', () => {
  expect(vectors.credentials.length).toBe(3)
  for (const { name, header, json } of vectors.credentials) expect(readOf(header), name).toEqual(json)
})

test('the authorization that the official evm client signed is read, and its nonce is the one of its challenge', async () => {
  const read = readOf(must(vectors.credentials[0]).header)
  const payload = parseEvmPayload(read.payload)
  if (!payload.ok) throw new Error(payload.fault.message)
  const { from, to, value, validAfter, validBefore, nonce, signature } = payload.value
  expect(nonce).toBe(chargeNonce(read.challenge.id, read.challenge.realm))
  expect(parsePayerSource(read.source ?? '')).toEqual({ chainId: 84532, address: vectors.payer })
  const types = {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  } as const
  const signer = await recoverTypedDataAddress({
    domain: {
      name: 'USDC',
      version: '2',
      chainId: 84532,
      verifyingContract: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    },
    types,
    primaryType: 'TransferWithAuthorization',
    message: {
      from,
      to,
      value: BigInt(value),
      validAfter: BigInt(validAfter),
      validBefore: BigInt(validBefore),
      nonce,
    },
    signature,
  })
  expect(signer).toBe(vectors.payer)
})

test('the zero-amount proof that the official tempo client signed recovers to its payer over our digest', async () => {
  const read = readOf(must(vectors.credentials[1]).header)
  const payload = parseTempoPayload(read.payload)
  if (!payload.ok || payload.value.type !== 'proof') throw new Error('not a proof')
  const account = must(parsePayerSource(read.source ?? '')).address
  const subject = { chainId: 42431, account, challengeId: read.challenge.id, realm: read.challenge.realm }
  const digest = proofDigest(subject)
  expect(bytesToHex(digest)).toBe(vectors.proofHash)
  const { signature } = payload.value
  expect(await recoverTypedDataAddress({ ...proofTypedData(subject), signature })).toBe(vectors.payer)
  const bytes = hexToBytes(signature)
  const recoverable = Uint8Array.of(must(bytes[64]) - 27, ...bytes.subarray(0, 64))
  const key = secp256k1.recoverPublicKey(recoverable, digest, { prehash: false })
  const uncompressed = secp256k1.Point.fromBytes(key).toBytes(false)
  expect(checksumAddress(must(addressOfPublicKey(uncompressed)))).toBe(vectors.payer)
})

test('a credential is read by mppx as it was written, and what mppx writes is read as it was meant', () => {
  fc.assert(
    fc.property(credential, (given) => {
      const official = Credential.deserialize(formatMppCredential(given))
      const { request, meta: _meta, ...rest } = official.challenge
      expect({ ...rest, request: PaymentRequest.serialize(request) }).toEqual(defined(given.challenge))
      expect(official.payload).toEqual(JSON.parse(JSON.stringify(given.payload)))
      expect(official.source).toBe(given.source)
      const read = readOf(Credential.serialize(official))
      expect(challengeBinding(read.challenge)).toBe(challengeBinding(given.challenge))
      expect(read).toEqual({ ...given, payload: official.payload })
      expect(readOf(formatMppCredential(given))).toEqual(read)
    }),
  )
})

test('a credential is found with and without its scheme, in any case, padded, and beside other schemes', () => {
  const value = formatMppCredential(sample)
  const bare = value.slice('Payment '.length)
  const values = [value, bare, ` ${bare} `, `payment   ${bare}`, `PAYMENT\t${bare}`, `Bearer abc, ${value}`]
  values.push(
    `${value}, Bearer abc`,
    `Digest a="x, Payment y", ${value}`,
    Buffer.from(bare, 'base64url').toString('base64'),
  )
  for (const text of values) expect(readOf(text), text).toEqual(sample)
})

test('a credential of at most 32 KB is read, scheme included, and a longer one is not', () => {
  const filled = (size: number) => `Payment    ${wire({ ...sample, payload: { a: 'x'.repeat(size) } }).slice(8)}`
  const capacity = Math.floor(((mppCredentialLengthMax - filled(0).length) * 3) / 4)
  expect(filled(capacity).length).toBeLessThanOrEqual(mppCredentialLengthMax)
  expect(readOf(filled(capacity)).payload).toEqual({ a: 'x'.repeat(capacity) })
  expect(filled(capacity + 3).length).toBeGreaterThan(mppCredentialLengthMax)
  expect(faultOf(filled(capacity + 3))).toEqual({
    reason: 'malformed-credential',
    path: '',
    message: 'must be at most 32 KB',
  })
})

test('two credentials in one value are counted and refused, whatever joins them', () => {
  const value = formatMppCredential(sample)
  for (const [text, count] of [
    [`${value}, ${value}`, 2],
    [`${value},${value},payment x`, 3],
    [`Bearer a, ${value}, Bearer b, ${value}`, 2],
  ] as const) {
    expect(mppCredentialsIn(text)).toHaveLength(count)
    expect(faultOf(text).reason).toBe('bad-request')
  }
  for (const text of ['', 'Bearer abc', 'Payments abc', 'Bearer a, Basic b', 'Digest a="x, Payment y"', 'Payment'])
    expect(mppCredentialsIn(text), text).toEqual([])
  expect(mppCredentialsIn(`Bearer a, ${value}`)).toEqual([value])
})

test('what is not a credential is malformed, and the fault holds nothing of what was sent', () => {
  const secret = 'sk_live_secret'
  for (const [text, path] of [
    ['', ''],
    ['Payment', ''],
    [`Bearer ${secret}`, ''],
    [`Payment ${secret}!`, ''],
    [`Payment ${'A'.repeat(mppCredentialLengthMax)}`, ''],
    [wire([]), ''],
    [wire({}), '/challenge'],
    [wire({ challenge: secret, payload: {} }), '/challenge'],
    [wire({ ...sample, payload: secret }), '/payload'],
    [wire({ ...sample, payload: null }), '/payload'],
    [wire({ ...sample, payload: nested(40) }), '/payload'],
    [wire({ ...sample, source: { secret } }), '/source'],
    [wire({ ...sample, challenge: { ...sample.challenge, id: '' } }), '/challenge/id'],
    [wire({ ...sample, challenge: { ...sample.challenge, realm: 7 } }), '/challenge/realm'],
    [wire({ ...sample, challenge: { ...sample.challenge, method: `${secret}!` } }), '/challenge/method'],
    [wire({ ...sample, challenge: { ...sample.challenge, request: secret } }), '/challenge/request'],
    [wire({ ...sample, challenge: { ...sample.challenge, request: { amount: '1' } } }), '/challenge/request'],
    [wire({ ...sample, challenge: { ...sample.challenge, expires: secret } }), '/challenge/expires'],
    [wire({ ...sample, challenge: { ...sample.challenge, digest: secret } }), '/challenge/digest'],
    [wire({ ...sample, challenge: { ...sample.challenge, opaque: { a: 1 } } }), '/challenge/opaque'],
    [wire({ ...sample, challenge: { ...sample.challenge, opaque: { a: '\ud800' } } }), '/challenge/opaque'],
    [wire({ ...sample, challenge: { ...sample.challenge, header: 'a b' } }), '/challenge/header'],
  ] as const) {
    const fault = faultOf(text)
    expect(fault, text.slice(0, 60)).toMatchObject({ reason: 'malformed-credential', path })
    expect(JSON.stringify(fault)).not.toContain(secret)
  }
})

test('no two different challenges that are read have one binding', () => {
  const moved = { ...sample.challenge, digest: 'sha-256=:x:|Payment-Authorization' }
  const honest = { ...sample.challenge, digest: 'sha-256=:x:', header: 'Payment-Authorization' }
  expect(challengeBinding(moved)).toBe(challengeBinding(honest))
  expect(faultOf(formatMppCredential({ ...sample, challenge: moved })).path).toBe('/challenge/digest')
  expect(readOf(formatMppCredential({ ...sample, challenge: honest })).challenge).toEqual(honest)
  const slot = fc.constantFrom('a', 'b', '', '|', 'a|b')
  const member = fc.option(slot, { nil: undefined })
  const bent = fc.record({
    realm: slot,
    digest: member.map((text) => text && `sha-256=${text}`),
    opaque: member,
    header: member,
  })
  const seen = new Map<string, MppChallenge>()
  fc.assert(
    fc.property(bent, (members) => {
      const read = parseMppCredential(
        formatMppCredential({ ...sample, challenge: { ...sample.challenge, ...members } }),
      )
      if (!read.ok) return
      const binding = challengeBinding(read.value.challenge)
      expect(seen.get(binding) ?? read.value.challenge).toEqual(read.value.challenge)
      seen.set(binding, read.value.challenge)
    }),
    { numRuns: 2_000 },
  )
  expect(seen.size).toBeGreaterThan(10)
})

test('an opaque that an old mppx echoed as an object is bound as the text that it was', () => {
  const official = Challenge.from({ ...sample.challenge, id: 'i', request: {}, meta: { route: 'GET /ü', n: '1' } })
  const { opaque } = readOf(Credential.serialize({ challenge: official, payload: {} })).challenge
  const old = wire({ ...sample, challenge: { ...sample.challenge, opaque: { route: 'GET /ü', n: '1' } } })
  expect(readOf(old).challenge.opaque).toBe(opaque)
})

test('members that the protocol does not know, JSON null and empty texts are as if they were not there', () => {
  const more = { expires: null, digest: '', opaque: null, header: 'Authorization', meta: { a: 'b' }, future: [1] }
  expect(readOf(wire({ ...sample, challenge: { ...sample.challenge, ...more }, source: null, x: 1 }))).toEqual(sample)
})

test('an authorization that lacks a member or has a wrong one is an invalid payload, named by its path', () => {
  expect(parseEvmPayload(evmPayload)).toEqual({ ok: true, value: evmPayload })
  for (const [change, path] of [
    [{ type: 'permit2' }, '/type'],
    [{ from: '0x12' }, '/from'],
    [{ to: undefined }, '/to'],
    [{ value: 10_000 }, '/value'],
    [{ value: '-1' }, '/value'],
    [{ value: '1.5' }, '/value'],
    [{ value: (uint256Max + 1n).toString() }, '/value'],
    [{ validAfter: '' }, '/validAfter'],
    [{ validBefore: '0x10' }, '/validBefore'],
    [{ nonce: '0x00' }, '/nonce'],
    [{ signature: '0x' }, '/signature'],
    [{ signature: '0xabc' }, '/signature'],
    [{ signature: `0x${'ab'.repeat(8_193)}` }, '/signature'],
  ] as const)
    expect(parseEvmPayload({ ...evmPayload, ...change }), path).toMatchObject({
      ok: false,
      fault: { reason: 'invalid-payload', path },
    })
})

test('a tempo payload is a transaction, a hash or a proof, with bytes in it', () => {
  const hash = `0x${'cd'.repeat(32)}`
  for (const payload of [
    { type: 'transaction', signature: '0x76f8' },
    { type: 'proof', signature: `0x${'ab'.repeat(65)}` },
    { type: 'hash', hash },
  ])
    expect(parseTempoPayload({ ...payload, more: 1 })).toEqual({ ok: true, value: payload })
  for (const [payload, path] of [
    [{}, '/type'],
    [{ type: 'push', hash }, '/type'],
    [{ type: 'hash', hash: '0xcd' }, '/hash'],
    [{ type: 'hash', signature: hash }, '/hash'],
    [{ type: 'transaction', signature: '0x' }, '/signature'],
    [{ type: 'transaction', signature: '0x7' }, '/signature'],
    [{ type: 'transaction', hash }, '/signature'],
    [{ type: 'proof', signature: 'signed' }, '/signature'],
  ] as const)
    expect(parseTempoPayload(payload), path).toMatchObject({ ok: false, fault: { reason: 'invalid-payload', path } })
})

function readOf(header: string): MppCredential {
  const parsed = parseMppCredential(header)
  if (!parsed.ok) throw new Error(`${parsed.fault.path} ${parsed.fault.message}`)
  return parsed.value
}

function faultOf(header: string) {
  const parsed = parseMppCredential(header)
  if (parsed.ok) throw new Error('was read')
  return parsed.fault
}

function wire(value: unknown): string {
  return `Payment ${Buffer.from(JSON.stringify(value)).toString('base64url')}`
}

function nested(depth: number): unknown {
  return depth === 0 ? {} : { a: nested(depth - 1) }
}

/** mppx leaves absent members out. */
function defined(given: MppChallenge): Partial<MppChallenge> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function withoutBars(given: MppChallenge): MppChallenge {
  const plain = (text: string) => text.replaceAll('|', '/')
  return { ...given, realm: plain(given.realm) }
}
