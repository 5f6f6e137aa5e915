import bip39 from '@purser/protocol/vectors/bip39.json' with { type: 'json' }
import { entropyToMnemonic, mnemonicToSeedSync } from '@scure/bip39'
import { wordlist } from '@scure/bip39/wordlists/english'
import { expect, test } from 'vitest'
import { systemRandom } from '../platform/random.ts'
import { seedOfEntropy } from './mnemonic.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

test('the entropy of every BIP-39 test vector leads to its published seed', async () => {
  expect(bip39.vectors).toHaveLength(24)
  for (const { entropy, seed } of bip39.vectors)
    expect(hex(await seedOfEntropy(Buffer.from(entropy, 'hex'), bip39.passphrase))).toBe(seed)
})

test('without a passphrase the seed matches that of other wallets for the mnemonic', async () => {
  for (const size of [16, 20, 24, 28, 32, 32, 32]) {
    const entropy = systemRandom.bytes(size)
    expect(hex(await seedOfEntropy(entropy))).toBe(hex(mnemonicToSeedSync(entropyToMnemonic(entropy, wordlist))))
  }
})

test('entropy of an invalid size is refused, and the input is not modified', async () => {
  for (const size of [0, 15, 17, 33, 64]) await expect(seedOfEntropy(new Uint8Array(size))).rejects.toThrow(RangeError)
  const entropy = new Uint8Array(32).fill(5)
  await seedOfEntropy(entropy)
  expect(entropy.every((byte) => byte === 5)).toBe(true)
})
