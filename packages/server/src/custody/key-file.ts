import {
  chmodSync,
  closeSync,
  existsSync,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { Random } from '../platform/random.ts'

const keyBytes = 32

/**
 * Creates a missing key file if `createIfMissing` is set, which only the first `npm start` does. Otherwise throws, since a new key could open
 * nothing.
 */
export function requireKeyFile(
  file: string,
  options: { readonly createIfMissing: boolean; readonly random: Random },
): void {
  if (existsSync(file)) return
  if (!options.createIfMissing) throw new Error(`there is no key-encryption key at ${file}`)
  const key = options.random.bytes(keyBytes)
  try {
    createKeyFile(file, key, options.random)
  } finally {
    key.fill(0)
  }
}

/** Returns the key's bytes, which the caller must wipe. Throws for a file that other users can read. */
export function readKeyFile(file: string): Uint8Array {
  const descriptor = openSync(file, 'r')
  try {
    const { mode, size } = fstatSync(descriptor)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw new Error(`${file} can be read by other users; run: chmod 600 ${file}`)
    const key = new Uint8Array(new ArrayBuffer(keyBytes))
    if (size !== keyBytes || readSync(descriptor, key, 0, keyBytes, 0) !== keyBytes)
      throw new Error(`${file} is not ${keyBytes} bytes`)
    return key
  } finally {
    closeSync(descriptor)
  }
}

/** Creates the file atomically and never overwrites an existing one. */
function createKeyFile(file: string, key: Uint8Array, random: Random): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const part = `${file}.${Buffer.from(random.bytes(8)).toString('hex')}.part`
  writeFileSync(part, key, { mode: 0o600, flag: 'wx', flush: true })
  chmodSync(part, 0o600)
  try {
    linkSync(part, file)
  } catch (error) {
    // Another process was first; its key is used.
    if (!existsSync(file)) throw error
  } finally {
    rmSync(part)
  }
}
