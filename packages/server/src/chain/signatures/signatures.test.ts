import { keccak256, recoverAddress } from '@purser/protocol'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { systemRandom } from '../../platform/random.ts'
import { createSignatures, loadWasm } from './signatures.ts'

const halfOrder = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n >> 1n

test('the native curve is used on Linux x64, and the engine is reported', async () => {
  const { engine } = await createSignatures()
  expect(engine).toBe(process.platform === 'linux' && process.arch === 'x64' ? 'native' : engine)
  expect(['native', 'wasm']).toContain(engine)
})

test('both curves recover the signer, from each other’s signatures and from viem’s', async () => {
  const native = await createSignatures()
  const wasm = await loadWasm()
  for (let turn = 0; turn < 50; turn++) {
    const [key, hash] = [systemRandom.bytes(32), systemRandom.bytes(32)]
    const account = privateKeyToAccount(`0x${Buffer.from(key).toString('hex')}`).address.toLowerCase()
    for (const signer of [native, wasm]) {
      const { signature: compact, yParity } = signer.sign(hash, key)
      for (const reader of [native, wasm])
        expect(recoverAddress(reader.recover, native.keccak, hash, { compact, yParity })).toBe(account)
    }
  }
})

test('signatures have a low s, so that tokens accept them', async () => {
  const curves = [await createSignatures(), await loadWasm()]
  for (let turn = 0; turn < 50; turn++) {
    const [key, hash] = [systemRandom.bytes(32), systemRandom.bytes(32)]
    for (const { sign } of curves) {
      const s = BigInt(`0x${Buffer.from(sign(hash, key).signature.subarray(32)).toString('hex')}`)
      expect(s <= halfOrder).toBe(true)
    }
  }
})

test('invalid signatures make neither curve throw', async () => {
  const curves = [await createSignatures(), await loadWasm()]
  const bad = [new Uint8Array(64), new Uint8Array(64).fill(0xff), new Uint8Array(63), new Uint8Array(0)]
  for (const { recover } of curves) {
    for (const signature of bad) expect(recover(systemRandom.bytes(32), signature, 0)).toBeUndefined()
    expect(recover(new Uint8Array(31), new Uint8Array(64).fill(1), 0)).toBeUndefined()
  }
})

test('both curves refuse an invalid private key', async () => {
  for (const { publicKeyOf } of [await createSignatures(), await loadWasm()])
    expect(() => publicKeyOf(new Uint8Array(32))).toThrow()
})

test('the fast Keccak is Keccak-256, and a later hash does not change an earlier result', async () => {
  const { keccak } = await createSignatures()
  const first = keccak(new Uint8Array([1]))
  const copy = Buffer.from(first).toString('hex')
  for (let size = 0; size < 300; size += 7) {
    const bytes = systemRandom.bytes(size)
    expect(Buffer.from(keccak(bytes)).toString('hex')).toBe(Buffer.from(keccak256(bytes)).toString('hex'))
  }
  expect(Buffer.from(first).toString('hex')).toBe(copy)
})
