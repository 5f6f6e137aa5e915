import {
  evmAccountPath,
  hdChildAddress,
  hdMaster,
  hdPrivateChild,
  hdPrivatePath,
  hdPublicOf,
  parseHdPath,
} from '@purser/protocol'
import bip32 from '@purser/protocol/vectors/bip32.json' with { type: 'json' }
import { HDNodeWallet } from 'ethers'
import { HDKey } from 'viem/accounts'
import { expect, test } from 'vitest'
import { systemRandom } from '../../platform/random.ts'
import { createSignatures, loadWasm } from './signatures.ts'

const order = Buffer.from('fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141', 'hex')
const one = Buffer.concat([Buffer.alloc(31), Buffer.from([1])])
const orderMinusOne = Buffer.concat([order.subarray(0, 31), Buffer.from([0x40])])
const hex = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString('hex')

test('both curves derive the keys of the published BIP-32 test vectors', async () => {
  for (const curve of [await createSignatures(), await loadWasm()]) {
    for (const { seed, chains } of bip32.vectors) {
      const master = hdMaster(Buffer.from(seed, 'hex'), curve)
      for (const { path, xprv } of chains) {
        const node = hdPrivatePath(master, parseHdPath(path) ?? [], curve)
        const published = HDKey.fromExtendedKey(xprv)
        expect([hex(node.privateKey), hex(node.chainCode)]).toEqual([
          hex(published.privateKey),
          hex(published.chainCode),
        ])
        expect(hex(hdPublicOf(node, curve).publicKey)).toBe(hex(published.publicKey))
      }
    }
  }
})

test('both curves derive the same child keys as ethers, from public and from private parents', async () => {
  const curves = [await createSignatures(), await loadWasm()]
  for (let account = 0; account < 5; account++) {
    const seed = systemRandom.bytes(64)
    const theirs = HDNodeWallet.fromSeed(seed).derivePath(`m/44'/60'/${account}'/0`)
    for (const curve of curves) {
      const external = hdPrivatePath(hdMaster(seed, curve), evmAccountPath(account), curve)
      for (const index of [0, 1, 999, 2_147_483_647]) {
        const { address, privateKey } = theirs.deriveChild(index)
        expect(hdChildAddress(hdPublicOf(external, curve), index, curve)).toBe(address)
        expect(`0x${hex(hdPrivateChild(external, index, curve).privateKey)}`).toBe(privateKey)
      }
    }
  }
})

test('a zero or out-of-range sum never becomes a key, and the inputs are not modified', async () => {
  for (const curve of [await createSignatures(), await loadWasm()]) {
    const publicKey = curve.publicKeyOf(one)
    const before = hex(publicKey)
    for (const tweak of [order, Buffer.alloc(32, 0xff), orderMinusOne]) {
      expect(curve.addToPrivateKey(one, tweak)).toBeUndefined()
      expect(curve.addToPublicKey(publicKey, tweak)).toBeUndefined()
    }
    expect(hex(curve.addToPrivateKey(one, Buffer.alloc(32)))).toBe(hex(one))
    const two = curve.addToPrivateKey(one, one) ?? new Uint8Array()
    expect(hex(curve.addToPublicKey(publicKey, one))).toBe(hex(curve.publicKeyOf(two)))
    expect([hex(one).endsWith('01'), hex(publicKey)]).toEqual([true, before])
    expect(() => curve.addToPublicKey(new Uint8Array(33), one)).toThrow()
  }
})
