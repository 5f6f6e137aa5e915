import type { KeySource, KeySources } from './custody/index.ts'
import type { ConfigFault } from './platform/config-fault.ts'
import { createReader } from './settings.ts'

type Env = Readonly<Record<string, string | undefined>>

const kinds = ['file', 'aws-kms', 'gcp-kms']
const makeOne =
  'name a file of 32 random bytes, mode 0600 (head -c 32 /dev/urandom > kek; chmod 600 kek), or set KEY_ENCRYPTION_KEY to their base64; keep a copy, since no sealed key can be opened without it'

/**
 * Reads where the key-encryption keys are, for `serve` and for operator commands. `KEY_ENCRYPTION` is the kind of the first key, and may be
 * omitted for a file; `KEY_ENCRYPTION_ALSO` lists those that open data sealed earlier.
 */
export function readKeySettings(env: Env, faults: ConfigFault[]): KeySources {
  return { first: readFirst(env, faults), also: readAlso(env, faults) }
}

function readFirst(env: Env, faults: ConfigFault[]): KeySource {
  const kind = env.KEY_ENCRYPTION || 'file'
  if (!kinds.includes(kind)) {
    const how = `set it to one of ${kinds.join(', ')}`
    faults.push({ name: 'KEY_ENCRYPTION', fault: 'is not usable', how })
    return { base64: '' }
  }
  if (kind === 'aws-kms') return named(env, faults, awsVariable)
  return kind === 'gcp-kms' ? named(env, faults, gcpVariable) : readLocal(env, faults)
}

function readLocal(env: Env, faults: ConfigFault[]): KeySource {
  const { KEY_ENCRYPTION_KEY_FILE: file = '', KEY_ENCRYPTION_KEY: base64 = '' } = env
  if (file !== '') return { file }
  if (isKey(base64)) return { base64 }
  const fault = base64 === '' ? 'is missing' : 'is missing, and KEY_ENCRYPTION_KEY is not 32 bytes of base64'
  faults.push({ name: 'KEY_ENCRYPTION_KEY_FILE', fault, how: makeOne })
  return { base64: '' }
}

interface ServiceVariable {
  readonly name: string
  readonly how: string
  readonly read: (value: string, env: Env) => KeySource | undefined
}

const awsVariable: ServiceVariable = {
  name: 'AWS_KMS_KEY_ARN',
  how: 'set it to the ARN of a symmetric key, such as arn:aws:kms:eu-central-1:111122223333:key/1234abcd-…; an alias may be moved to another key',
  read: (value, env) =>
    /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[\w-]+$/.test(value)
      ? { awsKms: { keyArn: value, endpoint: env.AWS_KMS_ENDPOINT || undefined } }
      : undefined,
}

const gcpVariable: ServiceVariable = {
  name: 'GCP_KMS_KEY',
  how: 'set it to the name of a symmetric key: projects/…/locations/…/keyRings/…/cryptoKeys/…',
  read: (value, env) =>
    /^projects\/[^/]+\/locations\/[^/]+\/keyRings\/[^/]+\/cryptoKeys\/[^/:]+$/.test(value)
      ? {
          gcpKms: {
            key: value,
            credentialsFile: env.GCP_CREDENTIALS_FILE || undefined,
            endpoint: env.GCP_KMS_ENDPOINT || undefined,
          },
        }
      : undefined,
}

function named(env: Env, faults: ConfigFault[], { name, how, read }: ServiceVariable): KeySource {
  const value = env[name] ?? ''
  const source = read(value, env)
  if (source !== undefined) return source
  faults.push({ name, fault: value === '' ? 'is missing' : 'is not usable', how })
  return { base64: '' }
}

/** Parses `file:…`, `base64:…`, `aws-kms:…` and `gcp-kms:…`, separated by commas. A fault never repeats the value: it may be a key. */
function readAlso(env: Env, faults: ConfigFault[]): readonly KeySource[] {
  const read = createReader(env, faults)
  const listed = read.list('KEY_ENCRYPTION_ALSO')
  const sources = listed.map((part) => readReference(part, env)).filter((source) => source !== undefined)
  if (sources.length === listed.length) return sources
  const how = 'list keys as file:/path, base64:…, aws-kms:arn:… or gcp-kms:projects/…, separated by commas'
  read.refuse('KEY_ENCRYPTION_ALSO', how)
  return []
}

function readReference(reference: string, env: Env): KeySource | undefined {
  const at = reference.indexOf(':')
  const [kind, value] = [reference.slice(0, at), reference.slice(at + 1)]
  if (kind === 'file') return value === '' ? undefined : { file: value }
  if (kind === 'base64') return isKey(value) ? { base64: value } : undefined
  if (kind === 'aws-kms') return awsVariable.read(value, env)
  return kind === 'gcp-kms' ? gcpVariable.read(value, env) : undefined
}

function isKey(base64: string): boolean {
  return Buffer.from(base64, 'base64').length === 32
}
