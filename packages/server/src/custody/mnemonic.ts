import { createHash, pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(pbkdf2)
const rounds = 2_048
const wordBits = 11
const letters = 8

/**
 * Returns the 64-byte seed for 16 to 32 bytes of entropy. The English mnemonic in between is kept as bytes, because strings cannot be wiped. Throws
 * a `RangeError` for other sizes. Source: BIP-39, "Generating the mnemonic" and "From mnemonic to seed".
 */
export async function seedOfEntropy(entropy: Uint8Array, passphrase = ''): Promise<Uint8Array> {
  if (![16, 20, 24, 28, 32].includes(entropy.length)) throw new RangeError('entropy is 16 to 32 bytes, a multiple of 4')
  const words = await writeMnemonic(entropy)
  try {
    return await derive(words, `mnemonic${passphrase.normalize('NFKD')}`, rounds, 64, 'sha512')
  } finally {
    words.fill(0)
  }
}

/** The mnemonic: one word for every 11 bits of the entropy and its checksum, separated by spaces. */
async function writeMnemonic(entropy: Uint8Array): Promise<Uint8Array> {
  const { wordlist } = await import('@scure/bip39/wordlists/english')
  const bits = new Uint8Array(new ArrayBuffer(entropy.length + 1))
  bits.set(entropy)
  const digest = createHash('sha256').update(entropy).digest()
  bits.set(digest.subarray(0, 1), entropy.length)
  digest.fill(0)
  const count = (entropy.length * 33) / 4 / wordBits
  const written = new Uint8Array(new ArrayBuffer(count * (letters + 1)))
  let size = 0
  for (let index = 0; index < count; index++) {
    if (index > 0) written[size++] = 0x20
    const word = wordlist[bitsAt(bits, index * wordBits)] ?? ''
    for (let at = 0; at < word.length; at++) written[size++] = word.charCodeAt(at)
  }
  bits.fill(0)
  return written.subarray(0, size)
}

/** Reads 11 bits at a bit position. */
function bitsAt(bytes: Uint8Array, from: number): number {
  const at = from >> 3
  const three = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)
  return (three >> (24 - wordBits - (from & 7))) & 0x7ff
}
