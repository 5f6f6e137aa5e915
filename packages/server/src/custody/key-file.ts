import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Random } from '../platform/random.ts'

export type KeySource = { readonly file: string } | { readonly base64: string }

/**
 * The key-encryption key's bytes. Only the first start of `npm start` may make the file; anywhere else a missing key
 * stops the start, since a new one would open nothing. A file that others may read is refused.
 */
export function readKey(
  source: KeySource,
  options: { readonly createIfMissing: boolean; readonly random: Random },
): Uint8Array {
  if ('base64' in source) return sized(Buffer.from(source.base64, 'base64'), 'KEY_ENCRYPTION_KEY')
  if (!existsSync(source.file)) {
    if (!options.createIfMissing) throw new Error(`there is no key-encryption key at ${source.file}`)
    createKeyFile(source.file, options.random.bytes(32))
  }
  if (process.platform !== 'win32' && (statSync(source.file).mode & 0o077) !== 0) {
    throw new Error(`${source.file} may be read by others; run: chmod 600 ${source.file}`)
  }
  return sized(readFileSync(source.file), source.file)
}

/** Made whole or not at all, and never over one that is there. */
function createKeyFile(file: string, key: Uint8Array): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const part = `${file}.${Buffer.from(key.subarray(0, 4)).toString('hex')}.part`
  writeFileSync(part, key, { mode: 0o600, flag: 'wx', flush: true })
  chmodSync(part, 0o600)
  try {
    linkSync(part, file)
  } catch (error) {
    // Another process was first; its key is the one.
    if (!existsSync(file)) throw error
  } finally {
    rmSync(part)
  }
}

function sized(key: Uint8Array, name: string): Uint8Array {
  if (key.length !== 32) throw new Error(`${name} is not 32 bytes`)
  return key
}
