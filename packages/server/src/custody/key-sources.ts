import { createHash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import type { GcpKmsSource } from './gcp-token.ts'
import { createKeyRing, type KeyEncryption, type KeyRing } from './key-encryption.ts'
import { readKeyFile, requireKeyFile } from './key-file.ts'
import { localKeyEncryption } from './local-kek.ts'

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
