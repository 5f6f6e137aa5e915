import fc from 'fast-check'
import { BodyDigest, evm } from 'mppx'
import { Proof } from 'mppx/tempo'
import { hashTypedData } from 'viem'
import { expect, test } from 'vitest'
import * as Attribution from '../../node_modules/mppx/dist/tempo/Attribution.js'
import { bytesToHex, type Hex } from '../bytes.ts'
import { keccak256 } from '../hash.ts'
import vectors from '../vectors/mpp-memo.json' with { type: 'json' }
import { attributionMemo, isMemoBound } from './attribution.ts'
import { contentDigest, sameDigest } from './digest.ts'
import { chargeNonce } from './evm-nonce.ts'
import { proofDigest, proofTypedData } from './proof.ts'
import { formatPayerSource, parsePayerSource } from './source.ts'

const text = fc.string({ maxLength: 60, unit: 'grapheme' })
const address = fc.uint8Array({ minLength: 20, maxLength: 20 }).map(bytesToHex)
const chainId = fc.integer({ min: 1, max: 2 ** 40 })

test('each memo of the vectors is made for its challenge as mppx made it', () => {
  expect(vectors.memos.length).toBe(3)
  for (const { memo, ...of } of vectors.memos) {
    expect(attributionMemo(of)).toBe(memo)
    expect(isMemoBound(attributionMemo(of), of)).toBe(true)
  }
})

test('a memo is made and judged as mppx does', () => {
  fc.assert(
    fc.property(text, text, fc.option(text, { nil: undefined }), text, (realm, challengeId, clientId, other) => {
      const memo = attributionMemo({ realm, challengeId, clientId })
      expect(memo).toBe(Attribution.encode({ serverId: realm, challengeId, ...(clientId && { clientId }) }))
      expect(isMemoBound(memo, { realm, challengeId })).toBe(true)
      expect(isMemoBound(memo, { realm, challengeId: other })).toBe(other === challengeId)
      expect(isMemoBound(memo, { realm: other, challengeId })).toBe(other === realm)
    }),
  )
})

test('a memo with one digit changed is bound exactly where mppx says so, which is in the bytes of the client alone', () => {
  const of = { realm: 'api.example.com', challengeId: 'QgKcHUm5xPaNDml2FcG3m8' }
  const memo = attributionMemo({ ...of, clientId: 'agent' })
  const upper: Hex = `0x${memo.slice(2).toUpperCase()}`
  expect(isMemoBound(upper, of)).toBe(true)
  for (let at = 2; at < 66; at++) {
    const digit = memo[at] === '0' ? '1' : '0'
    const changed: Hex = `0x${memo.slice(2, at)}${digit}${memo.slice(at + 1)}`
    const official =
      Attribution.verifyServer(changed, of.realm) && Attribution.verifyChallengeBinding(changed, of.challengeId)
    expect(isMemoBound(changed, of), String(at)).toBe(official)
    expect(isMemoBound(changed, of), String(at)).toBe(at >= 32 && at < 52)
  }
  for (const wrong of [
    '0x',
    `${memo}00`,
    memo.slice(0, 64),
    `0x${'0'.repeat(64)}`,
    `${memo.slice(0, 40)}zz${memo.slice(42)}`,
  ])
    expect(isMemoBound(`0x${wrong.slice(2)}`, of), wrong).toBe(false)
})

test('the digest of a proof is that of the typed data that mppx signs, under any keccak', () => {
  fc.assert(
    fc.property(chainId, address, text, text, (chain, account, challengeId, realm) => {
      const subject = { chainId: chain, account, challengeId, realm }
      expect(proofTypedData(subject)).toEqual(Proof.typedData(subject))
      expect(bytesToHex(proofDigest(subject))).toBe(Proof.hash(subject))
      expect(bytesToHex(proofDigest(subject, keccak256))).toBe(hashTypedData(proofTypedData(subject)))
    }),
  )
})

test('a proof for what is not an account has no digest', () => {
  const subject = { chainId: 1, challengeId: 'c', realm: 'r' }
  expect(() => proofDigest({ ...subject, account: '0x12' })).toThrow(RangeError)
  expect(() => proofDigest({ ...subject, account: `0x${'g'.repeat(40)}` })).toThrow(RangeError)
})

test('the nonce of an authorization is the hash of its challenge as mppx computes it', () => {
  fc.assert(
    fc.property(text, text, (id, realm) => {
      const official = { id, realm, method: 'evm', intent: 'charge', request: {} }
      expect(chargeNonce(id, realm)).toBe(evm.challengeHash(official))
    }),
  )
})

test('the digest of a body is in the form of RFC 9530 and of the same body as the one mppx computes', () => {
  expect(contentDigest(new TextEncoder().encode('{"hello": "world"}\n'))).toBe(
    'sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:',
  )
  fc.assert(
    fc.property(text, text, (body, other) => {
      const ours = contentDigest(new TextEncoder().encode(body))
      expect(sameDigest(ours, BodyDigest.compute(body))).toBe(true)
      expect(sameDigest(ours, ours)).toBe(true)
      expect(sameDigest(ours, BodyDigest.compute(other))).toBe(body === other)
    }),
  )
})

test('a digest that cannot be read, or is of another algorithm, equals nothing', () => {
  const good = contentDigest(new Uint8Array([1]))
  const other = contentDigest(new Uint8Array([2]))
  const strong = `sha-512=:${Buffer.alloc(64).toString('base64')}:`
  expect(sameDigest(good, `${strong}, ${good}`)).toBe(true)
  expect(sameDigest(good, other)).toBe(false)
  for (const bad of [
    '',
    strong,
    'md5=:AAAA:',
    'sha-256=',
    'sha-256=::',
    'sha-256=:AAAA:',
    good.slice(0, -1),
    good.replace('=:', '=::'),
    good.toUpperCase(),
    `${good}, ${good}`,
    `${good}, ${other}`,
    `${good}${' '.repeat(1_024)}`,
  ]) {
    expect(sameDigest(bad, bad), bad).toBe(false)
    expect(sameDigest(good, bad), bad).toBe(false)
  }
})

test('the account that a source names is read as mppx reads it', () => {
  fc.assert(
    fc.property(chainId, address, (chain, account) => {
      const source = formatPayerSource({ chainId: chain, address: account })
      expect(source).toBe(Proof.proofSource({ address: account, chainId: chain }))
      expect(parsePayerSource(source)).toEqual(Proof.parsePkhSource(source))
    }),
  )
  const account = `0x${'12'.repeat(20)}`
  for (const wrong of [
    '',
    account,
    `did:pkh:eip155:1:${account}0`,
    `did:pkh:eip155:01:${account}`,
    `did:pkh:eip155:-1:${account}`,
    `did:pkh:eip155:99999999999999999999:${account}`,
    `did:pkh:eip155:9999999999999999:${account}`,
    `did:pkh:solana:1:${account}`,
    `did:key:z6Mk`,
    ` did:pkh:eip155:1:${account}`,
    `did:pkh:eip155:1:${account}\n`,
  ])
    expect(parsePayerSource(wrong), wrong).toBeUndefined()
})
