import { createHash } from 'node:crypto'
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
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import type { GcpKmsSource } from './gcp-kms.ts'
import { createKeyRing, decrypt, encrypt, type KeyEncryption, type KeyRing } from './key-encryption.ts'

/** Location of a key-encryption key. */
export type KeySource =
  | { readonly file: string }
  | { readonly base64: string }
  /** An AWS KMS key by its ARN, which names its region; credentials come from the AWS SDK's default chain. */
  | { readonly awsKms: { readonly keyArn: string; readonly endpoint?: string | undefined } }
  /** A Google Cloud KMS key; credentials are a service account's key file, or the machine's own account by default. */
  | { readonly gcpKms: GcpKmsSource }

/** `first` is used for new data and is the target of a rotation; `also` open existing data. */
export interface KeySources {
  readonly first: KeySource
  readonly also: readonly KeySource[]
}

export interface OpeningKeys {
  readonly random: Random
  readonly clock: Clock
  readonly outbound: Pick<Outbound, 'exchange'>
  /** Whether a missing key file may be created. True only on the first `npm start`, and only for the first key. */
  readonly createIfMissing: boolean
}

/** Opens all configured keys. Makes no request to a key service. */
export async function openKeyRing({ first, also }: KeySources, opening: OpeningKeys): Promise<KeyRing> {
  const key = await openKey(first, opening)
  const others = []
  for (const source of also) others.push(await openKey(source, { ...opening, createIfMissing: false }))
  return createKeyRing(key, others)
}

/** Key service clients are imported only when used, because they take memory. */
async function openKey(source: KeySource, opening: OpeningKeys): Promise<KeyEncryption> {
  if ('base64' in source) return localKeyEncryption(() => Buffer.from(source.base64, 'base64'), opening.random)
  if ('file' in source) {
    requireKeyFile(source.file, opening)
    return localKeyEncryption(() => readKeyFile(source.file), opening.random)
  }
  if ('awsKms' in source) {
    const { awsKmsKeyEncryption } = await import('./aws-kms.ts')
    return awsKmsKeyEncryption(source.awsKms, serviceFingerprint('aws-kms', source.awsKms.keyArn))
  }
  const { gcpKmsKeyEncryption } = await import('./gcp-kms.ts')
  return gcpKmsKeyEncryption(source.gcpKms, {
    ...opening,
    fingerprint: serviceFingerprint('gcp-kms', source.gcpKms.key),
  })
}

/**
 * Fingerprint of a key service's key, made from its name because the key is not exported. New versions under that name open what older ones
 * wrapped.
 */
function serviceFingerprint(kind: 'aws-kms' | 'gcp-kms', name: string): string {
  return createHash('sha256').update(`purser key-encryption key|${kind}|${name}`).digest('hex').slice(0, 32)
}

/**
 * A local key-encryption key of 32 bytes. It is read for each use and wiped afterwards, so that it is in memory for microseconds. Throws when the
 * key has changed since the start, since other processes could not open what it wraps.
 */
export function localKeyEncryption(read: () => Uint8Array, random: Random): KeyEncryption {
  const withKey = <T>(use: (key: Uint8Array) => T): T => {
    const key = read()
    try {
      if (key.length !== 32) throw new Error('a key-encryption key is 32 bytes')
      return use(key)
    } finally {
      key.fill(0)
    }
  }
  const fingerprint = withKey(fingerprintOf)
  const withSameKey = <T>(use: (key: Uint8Array) => T): T =>
    withKey((key) => {
      if (fingerprintOf(key) !== fingerprint)
        throw new Error('the key-encryption key changed while the process was running')
      return use(key)
    })
  return {
    fingerprint,
    wrap: async (dataKey, associatedData) => withSameKey((key) => encrypt(key, dataKey, associatedData, random)),
    unwrap: async (wrapped, associatedData) => withSameKey((key) => decrypt(key, wrapped, associatedData)),
  }
}

function fingerprintOf(key: Uint8Array): string {
  return createHash('sha256').update('purser key-encryption key').update(key).digest('hex').slice(0, 32)
}

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
