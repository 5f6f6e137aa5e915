import { secp256k1 } from '@noble/curves/secp256k1.js'
import fc from 'fast-check'
import { concatHex, encodeAbiParameters, recoverAddress as viemRecoverAddress } from 'viem'
import { serializeErc6492Signature } from 'viem/utils'
import { expect, test } from 'vitest'
import { recover } from '../test/signed-payment.ts'
import { bytesToHex, type Hex, hexToBytes, uint256ToBytes } from './bytes.ts'
import { keccak256 } from './hash.ts'
import { parseEcdsa, parseSignature, recoverAddress, signatureBytesMax } from './signature.ts'

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
const hash = keccak256(Uint8Array.of(1, 2, 3))
const magic = `0x${'6492'.repeat(16)}` as const
const bytes = fc.uint8Array({ maxLength: 400 }).map(bytesToHex)
const factory = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map(bytesToHex)
  .filter((text) => BigInt(text) > 0n)
const privateKey = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .filter((key) => secp256k1.utils.isValidSecretKey(key))

function sign(key: Uint8Array): { r: bigint; s: bigint; recovery: number } {
  const [recovery = 0, ...compact] = secp256k1.sign(hash, key, { prehash: false, format: 'recovered' })
  const { r, s } = secp256k1.Signature.fromBytes(Uint8Array.from(compact), 'compact')
  return { r, s, recovery }
}

function join(r: bigint, s: bigint, v: number): Hex {
  return `${bytesToHex(uint256ToBytes(r))}${bytesToHex(uint256ToBytes(s)).slice(2)}${v.toString(16).padStart(2, '0')}`
}

test('the account that signed is recovered, with every v that wallets write, as viem recovers it', async () => {
  for (const key of fc.sample(privateKey, { numRuns: 10, seed: 3 })) {
    const { r, s, recovery } = sign(key)
    for (const v of [recovery, 27 + recovery]) {
      const parsed = parseSignature(join(r, s, v))
      if (typeof parsed === 'string' || parsed.kind !== 'ecdsa') throw new Error('not an ECDSA signature')
      expect(parsed).toMatchObject({ v: 27 + recovery, yParity: recovery })
      const official = await viemRecoverAddress({ hash, signature: join(r, s, v) })
      expect(recoverAddress(recover, keccak256, hash, parsed)).toBe(official.toLowerCase())
    }
  }
})

test('the second signature that anybody can make of a first one is not taken', () => {
  fc.assert(
    fc.property(privateKey, (key) => {
      const { r, s, recovery } = sign(key)
      expect(parseSignature(join(r, order - s, 28 - recovery))).toMatchObject({ kind: 'contract', fault: 'high-s' })
    }),
    { numRuns: 20 },
  )
  expect(parseEcdsa(hexToBytes(join(1n, order >> 1n, 27)))).toMatchObject({ kind: 'ecdsa' })
  expect(parseEcdsa(hexToBytes(join(1n, (order >> 1n) + 1n, 27)))).toBe('high-s')
})

test('numbers outside the curve and unknown v are no ECDSA signature', () => {
  for (const v of [2, 26, 29, 31, 37, 255]) expect(parseEcdsa(hexToBytes(join(1n, 1n, v)))).toBe('bad-v')
  for (const [r, s] of [
    [0n, 1n],
    [1n, 0n],
    [order, 1n],
    [1n, order],
    [(1n << 256n) - 1n, 1n],
  ] as const) {
    expect(parseEcdsa(hexToBytes(join(r, s, 27)))).toBe('out-of-range')
  }
  expect(parseEcdsa(new Uint8Array(64))).toBe('out-of-range')
  expect(parseEcdsa(new Uint8Array(66))).toBe('out-of-range')
})

test('r and s are compared with the order of the curve as numbers', () => {
  const half = order >> 1n
  const near = fc.constantFrom(0n, 1n, half - 1n, half, half + 1n, order - 1n, order, order + 1n, (1n << 256n) - 1n)
  const number = fc.oneof(near, fc.bigInt(0n, (1n << 256n) - 1n))
  fc.assert(
    fc.property(number, number, (r, s) => {
      const isOut = [r, s].some((part) => part === 0n || part >= order)
      const fault = isOut ? 'out-of-range' : s > half ? 'high-s' : undefined
      const parsed = parseEcdsa(hexToBytes(join(r, s, 27)))
      expect(typeof parsed === 'string' ? parsed : undefined).toBe(fault)
      if (typeof parsed !== 'string') expect([BigInt(parsed.r), BigInt(parsed.s)]).toEqual([r, s])
    }),
  )
})

test('a signature of any other length is a contract account’s, as it came', () => {
  for (const text of ['0x', '0x01', `0x${'ab'.repeat(64)}`, `0x${'ab'.repeat(66)}`, `0x${'AB'.repeat(2_000)}`]) {
    expect(parseSignature(text)).toEqual({ kind: 'contract', signature: text })
  }
})

test('an EIP-6492 wrapper opens to what was put in', () => {
  fc.assert(
    fc.property(factory, bytes, bytes, (address, data, signature) => {
      const wrapped = serializeErc6492Signature({ address, data, signature })
      expect(parseSignature(wrapped)).toEqual({
        kind: 'eip6492',
        factory: address,
        factoryCalldata: data,
        inner: signature,
      })
    }),
  )
})

test('a wrapper that names no factory is judged whole, by the account', () => {
  const wrapped = serializeErc6492Signature({ address: `0x${'0'.repeat(40)}`, data: '0x01', signature: '0x02' })
  expect(parseSignature(wrapped)).toEqual({ kind: 'contract', signature: wrapped })
})

test('a wrapper whose offsets lead outside, or that is cut, is refused', () => {
  const word = (value: bigint) => bytesToHex(uint256ToBytes(value))
  const head = encodeAbiParameters([{ type: 'address' }], [`0x${'11'.repeat(20)}`])
  const lies: Hex[] = [
    magic,
    concatHex([head, magic]),
    concatHex([head, word(96n), word(128n), magic]),
    concatHex([head, word(0n), word(0n), word(0n), magic]),
    concatHex([head, word(96n), word(96n), word(33n), word(0n), magic]),
    concatHex([head, word(1n << 255n), word(96n), word(0n), magic]),
    concatHex([head, word(96n), word(1n << 40n), word(0n), magic]),
    concatHex([head, word(96n), word(96n), word(1n << 255n), magic]),
    concatHex([word(1n << 200n), word(96n), word(96n), word(0n), magic]),
  ]
  for (const lie of lies) expect(parseSignature(lie), lie).toBe('bad-eip6492')
})

test('no text makes the parser throw or answer something that it does not hold', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        bytes,
        bytes.map((text) => concatHex([text, magic])),
      ),
      (text) => {
        const parsed = parseSignature(text)
        if (typeof parsed !== 'string' && parsed.kind === 'eip6492') {
          expect(text).toContain(parsed.inner.slice(2))
          expect(text).toContain(parsed.factoryCalldata.slice(2))
        }
      },
    ),
  )
  expect(parseSignature('')).toBe('not-hex')
  expect(parseSignature('0x123')).toBe('not-hex')
  expect(parseSignature(`0x${'zz'.repeat(65)}`)).toBe('not-hex')
  expect(parseSignature(`0x${'00'.repeat(signatureBytesMax + 1)}`)).toBe('too-long')
})

test('a key that cannot be recovered is no account', () => {
  const parsed = parseEcdsa(hexToBytes(join(5n, 1n, 27)))
  if (typeof parsed === 'string') throw new Error(parsed)
  expect(recoverAddress(recover, keccak256, hash, parsed)).toBeUndefined()
  expect(recoverAddress(() => new Uint8Array(33), keccak256, hash, parsed)).toBeUndefined()
})
