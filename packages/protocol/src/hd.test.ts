import { HDKey } from '@scure/bip32'
import { mnemonicToSeedSync } from '@scure/bip39'
import fc from 'fast-check'
import { hdKeyToAccount, HDKey as ViemHdKey } from 'viem/accounts'
import { expect, test } from 'vitest'
import { curve } from '../test/signed-payment.ts'
import { addressOfPublicKey, checksumAddress } from './address.ts'
import { bytesToHex, hexToBytes } from './bytes.ts'
import {
  evmAccountPath,
  type HdCurve,
  hdChildAddress,
  hdHardened,
  hdMaster,
  hdPrivateChild,
  hdPrivatePath,
  hdPublicChild,
  hdPublicOf,
  parseHdPath,
  wipeHdNode,
} from './hd.ts'
import bip32 from './vectors/bip32.json' with { type: 'json' }
import bip39 from './vectors/bip39.json' with { type: 'json' }
import bip44 from './vectors/bip44.json' with { type: 'json' }

function pathOf(text: string): readonly number[] {
  const path = parseHdPath(text)
  if (path === undefined) throw new Error(`not a path: ${text}`)
  return path
}

test.each(bip32.vectors)(
  'every chain of the BIP-32 vector with seed $seed comes out as published',
  ({ seed, chains }) => {
    const master = hdMaster(hexToBytes(`0x${seed}`), curve)
    for (const { path, xpub, xprv } of chains) {
      const node = hdPrivatePath(master, pathOf(path), curve)
      const [published, neutered] = [HDKey.fromExtendedKey(xprv), HDKey.fromExtendedKey(xpub)]
      expect(bytesToHex(node.privateKey)).toBe(bytesToHex(published.privateKey ?? new Uint8Array()))
      expect(bytesToHex(node.chainCode)).toBe(bytesToHex(published.chainCode ?? new Uint8Array()))
      const open = hdPublicOf(node, curve)
      expect(bytesToHex(open.publicKey)).toBe(bytesToHex(neutered.publicKey ?? new Uint8Array()))
      expect(bytesToHex(open.chainCode)).toBe(bytesToHex(neutered.chainCode ?? new Uint8Array()))
    }
  },
)

test.each(bip32.vectors)(
  'the public parents of the BIP-32 vector with seed $seed derive its open children',
  ({ chains }) => {
    for (const { path, xpub } of chains) {
      const parent = chains.find((chain) => chain.path === path.replace(/\/[^/]*$/, '') && chain.path !== path)
      const index = pathOf(path).at(-1)
      if (parent === undefined || index === undefined) continue
      const { publicKey, chainCode } = HDKey.fromExtendedKey(parent.xpub)
      const node = { publicKey: publicKey ?? new Uint8Array(), chainCode: chainCode ?? new Uint8Array() }
      if (index >= hdHardened) expect(() => hdPublicChild(node, index, curve)).toThrow(RangeError)
      else
        expect(bytesToHex(hdPublicChild(node, index, curve).publicKey)).toBe(
          bytesToHex(HDKey.fromExtendedKey(xpub).publicKey ?? new Uint8Array()),
        )
    }
  },
)

test('the seeds of the BIP-39 vectors grow the master keys that were published with them', () => {
  for (const { seed, xprv } of bip39.vectors) {
    const { privateKey, chainCode } = hdMaster(hexToBytes(`0x${seed}`), curve)
    const published = HDKey.fromExtendedKey(xprv)
    expect([privateKey, chainCode].map(bytesToHex)).toEqual(
      [published.privateKey, published.chainCode].map((bytes) => bytesToHex(bytes ?? new Uint8Array())),
    )
  }
})

test('the accounts of the published mnemonic are those that every EVM wallet shows, with their keys', () => {
  const master = hdMaster(mnemonicToSeedSync(bip44.mnemonic, bip44.passphrase), curve)
  expect(evmAccountPath(0)).toEqual(pathOf(bip44.path))
  const external = hdPrivatePath(master, evmAccountPath(0), curve)
  const open = hdPublicOf(external, curve)
  bip44.accounts.forEach(([address = '', privateKey], index) => {
    expect(hdChildAddress(open, index, curve)).toBe(address)
    expect(bytesToHex(hdPrivateChild(external, index, curve).privateKey)).toBe(privateKey)
  })
})

test('any account and any child agree with @scure/bip32 and viem, from the private and from the public side', () => {
  const index = fc.nat({ max: hdHardened - 1 })
  const seeds = fc.uint8Array({ minLength: 16, maxLength: 64 })
  fc.assert(
    fc.property(seeds, index, index, (seed, account, child) => {
      const parent = hdPrivatePath(hdMaster(seed, curve), evmAccountPath(account), curve)
      const theirs = HDKey.fromMasterSeed(seed).derive(`m/44'/60'/${account}'/0`).deriveChild(child)
      expect(bytesToHex(hdPrivateChild(parent, child, curve).privateKey)).toBe(
        bytesToHex(theirs.privateKey ?? new Uint8Array()),
      )
      const open = hdPublicOf(parent, curve)
      const ours = hdPublicChild(open, child, curve)
      expect(bytesToHex(ours.publicKey)).toBe(bytesToHex(theirs.publicKey ?? new Uint8Array()))
      expect(bytesToHex(ours.chainCode)).toBe(bytesToHex(theirs.chainCode ?? new Uint8Array()))
      const path = { path: `m/44'/60'/${account}'/0/${child}` } as const
      const { address } = hdKeyToAccount(ViemHdKey.fromMasterSeed(seed), path)
      expect(hdChildAddress(open, child, curve)).toBe(address)
    }),
    { numRuns: 25 },
  )
})

test('a path says exactly what it says, and everything else is refused', () => {
  expect(parseHdPath('m')).toEqual([])
  expect(parseHdPath("m/44'/60h/0H/0/2147483647")).toEqual([
    44 + hdHardened,
    60 + hdHardened,
    hdHardened,
    0,
    2_147_483_647,
  ])
  for (const wrong of [
    '',
    '/',
    'm/',
    "44'/0",
    'M/0',
    'm/-1',
    'm/01',
    'm/2147483648',
    'm/1.5',
    'm/1e3',
    'm//1',
    "m/1''",
    'm/ 1',
    'm/x',
    'm/99999999999',
  ])
    expect(parseHdPath(wrong), wrong).toBeUndefined()
  expect(parseHdPath(`m${'/0'.repeat(256)}`)).toBeUndefined()
})

test('an index that is none, a hardened public child and a seed of another size are refused', () => {
  const master = hdMaster(new Uint8Array(64).fill(7), curve)
  const open = hdPublicOf(master, curve)
  for (const wrong of [-1, 0.5, Number.NaN, 2 * hdHardened]) {
    expect(() => hdPrivateChild(master, wrong, curve)).toThrow(RangeError)
    expect(() => hdPublicChild(open, wrong, curve)).toThrow(RangeError)
    expect(() => evmAccountPath(wrong)).toThrow(RangeError)
  }
  expect(() => hdChildAddress(open, hdHardened, curve)).toThrow(RangeError)
  expect(() => evmAccountPath(hdHardened)).toThrow(RangeError)
  for (const size of [0, 15, 65]) expect(() => hdMaster(new Uint8Array(size), curve)).toThrow(RangeError)
  expect(() => hdPublicChild({ ...open, publicKey: open.publicKey.subarray(1) }, 0, curve)).toThrow(RangeError)
})

test('a tweak that the curve refuses is an error, never a key', () => {
  const master = hdMaster(new Uint8Array(64).fill(7), curve)
  const refusing: HdCurve = { ...curve, addToPublicKey: () => undefined, addToPrivateKey: () => undefined }
  expect(() => hdPrivateChild(master, 0, refusing)).toThrow('no child')
  expect(() => hdPublicChild(hdPublicOf(master, curve), 0, refusing)).toThrow('no child')
  const zeros: HdCurve = { ...curve, hmacSha512: () => new Uint8Array(64) }
  expect(() => hdMaster(new Uint8Array(64), zeros)).toThrow('yields no key')
})

test('walking a path wipes every node between, leaves the first alone, and the last is wiped on demand', () => {
  const seen: Uint8Array[] = []
  const watching: HdCurve = {
    ...curve,
    addToPrivateKey(privateKey, tweak) {
      seen.push(privateKey, tweak)
      return curve.addToPrivateKey(privateKey, tweak)
    },
  }
  const master = hdMaster(new Uint8Array(64).fill(9), curve)
  const before = bytesToHex(master.privateKey)
  const last = hdPrivatePath(master, evmAccountPath(3), watching)
  expect(seen).toHaveLength(8)
  expect(seen.every((bytes) => bytes.every((byte) => byte === 0))).toBe(true)
  expect(bytesToHex(master.privateKey)).toBe(before)
  const account = addressOfPublicKey(curve.publicKeyOf(last.privateKey)) ?? ''
  expect(checksumAddress(account)).toMatch(/^0x/)
  wipeHdNode(last)
  expect([...last.privateKey, ...last.chainCode].every((byte) => byte === 0)).toBe(true)
})
