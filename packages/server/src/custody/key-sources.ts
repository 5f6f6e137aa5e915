import { createHash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import { createKeyRing, type KeyEncryption, type KeyRing } from './key-encryption.ts'
import { readKeyFile, requireKeyFile } from './key-file.ts'
import { localKeyEncryption } from './local-kek.ts'

/** Where a key-encryption key is. */
export type KeySource =
  | { readonly file: string }
  | { readonly base64: string }
  /** An AWS KMS key by its ARN, which names its region; credentials are found as the AWS SDK finds them. */
  | { readonly awsKms: { readonly keyArn: string; readonly endpoint?: string | undefined } }
  /** A Google Cloud KMS key; credentials are a service account's key file, or the machine's own account where none is named. */
  | { readonly gcpKms: GcpKmsSource }

export interface GcpKmsSource {
  /** `projects/…/locations/…/keyRings/…/cryptoKeys/…` */
  readonly key: string
  readonly credentialsFile?: string | undefined
  readonly endpoint?: string | undefined
  readonly metadataUrl?: string | undefined
}

/** The key that seals from now on, or that a rotation leads to; and those that still open what was sealed before. */
export interface KeySources {
  readonly first: KeySource
  readonly also: readonly KeySource[]
}

export interface OpeningKeys {
  readonly random: Random
  readonly clock: Clock
  readonly outbound: Pick<Outbound, 'exchange'>
  /** Whether a missing file may be made: only the first start of `npm start` says yes, and only for the first key. */
  readonly createIfMissing: boolean
}

/** Opens every key that the configuration names. Asks no key service yet. */
export async function openKeyRing({ first, also }: KeySources, opening: OpeningKeys): Promise<KeyRing> {
  const key = await openKey(first, opening)
  const others = []
  for (const source of also) others.push(await openKey(source, { ...opening, createIfMissing: false }))
  return createKeyRing(key, others)
}

/** The clients of key services are read only where one is used: they take memory. */
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

/** A key service never tells its key: its name stands for it. New versions behind the name open what older ones wrapped. */
function serviceFingerprint(kind: 'aws-kms' | 'gcp-kms', name: string): string {
  return createHash('sha256').update(`purser key-encryption key|${kind}|${name}`).digest('hex').slice(0, 32)
}
