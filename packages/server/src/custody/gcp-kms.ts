import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'
import { unavailable } from './errors.ts'
import type { KeyEncryption } from './key-encryption.ts'

const service = 'https://cloudkms.googleapis.com'
const limits = { timeoutMs: 5_000, bytesMax: 65_536 }

const Checksum = z.union([z.string(), z.number()]).transform(String)
const Encrypted = z.object({
  name: z.string(),
  ciphertext: z.base64(),
  ciphertextCrc32c: Checksum,
  verifiedPlaintextCrc32c: z.literal(true),
  verifiedAdditionalAuthenticatedDataCrc32c: z.literal(true),
})
const Decrypted = z.object({ plaintext: z.base64(), plaintextCrc32c: Checksum })

/**
 * Data keys wrapped by Google Cloud KMS over REST. The associated data is its additional authenticated data; CRC32C checks in both directions
 * detect corruption before an unusable data key is stored. Source: Cloud KMS REST reference, `cryptoKeys.encrypt` and `cryptoKeys.decrypt`;
 * "Verifying end-to-end data integrity".
 */
export function gcpKmsKeyEncryption(
  source: GcpKmsSource,
  own: KmsAccess & { readonly fingerprint: string },
): KeyEncryption {
  const request = createRequest(source, own)
  return {
    fingerprint: own.fingerprint,
    async wrap(dataKey, associatedData) {
      const response = Encrypted.parse(
        await request('encrypt', { ...checked('plaintext', dataKey), ...authenticated(associatedData) }),
      )
      if (!response.name.startsWith(`${source.key}/cryptoKeyVersions/`)) throw new Error('Cloud KMS used another key')
      return intact(response.ciphertext, response.ciphertextCrc32c)
    },
    async unwrap(wrapped, associatedData) {
      const response = Decrypted.parse(
        await request('decrypt', { ...checked('ciphertext', wrapped), ...authenticated(associatedData) }),
      )
      return intact(response.plaintext, response.plaintextCrc32c)
    },
  }
}

interface KmsAccess {
  readonly outbound: Pick<Outbound, 'exchange'>
  readonly clock: Clock
}

/** Creates the function that sends one request to the key, and returns the JSON of its response. */
function createRequest(source: GcpKmsSource, access: KmsAccess) {
  const tokens = createGcpTokens(source, { ...access, audience: `${service}/` })
  return async (verb: 'encrypt' | 'decrypt', body: Readonly<Record<string, string>>): Promise<unknown> => {
    const url = `${source.endpoint ?? service}/v1/${source.key}:${verb}`
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${await tokens.token().catch(asUnavailable)}`,
    }
    const { status, json } = await access.outbound
      .exchange({ method: 'POST', url, headers, body: JSON.stringify(body) }, limits)
      .catch(asUnavailable)
    if (status !== 200) throw refusal(verb, status)
    return json
  }
}

function asUnavailable(error: unknown): never {
  throw unavailable(error)
}

/** Cloud KMS returns 400 for a ciphertext that does not open, which is permanent. */
function refusal(verb: string, status: number): Error {
  const error = new Error(`Cloud KMS refused to ${verb}: status ${status}`)
  return status === 400 ? error : unavailable(error)
}

function authenticated(associatedData: string): Record<string, string> {
  return checked('additionalAuthenticatedData', Buffer.from(associatedData))
}

function checked(name: string, bytes: Uint8Array): Record<string, string> {
  return { [name]: Buffer.from(bytes).toString('base64'), [`${name}Crc32c`]: String(crc32c(bytes)) }
}

function intact(base64: string, checksum: string): Uint8Array {
  const pooled = Buffer.from(base64, 'base64')
  const bytes = new Uint8Array(new ArrayBuffer(pooled.length))
  bytes.set(pooled)
  pooled.fill(0)
  if (String(crc32c(bytes)) === checksum) return bytes
  bytes.fill(0)
  throw new Error('the answer of Cloud KMS was changed in transit')
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1
  return value
})

/** CRC-32C (Castagnoli), unsigned. Source: RFC 3720, appendix B.4. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ (table[(crc ^ byte) & 0xff] ?? 0)
  return (crc ^ 0xffffffff) >>> 0
}

export interface GcpKmsSource {
  /** `projects/…/locations/…/keyRings/…/cryptoKeys/…` */
  readonly key: string
  readonly credentialsFile?: string | undefined
  readonly endpoint?: string | undefined
  readonly metadataUrl?: string | undefined
}

const metadataServer = 'http://metadata.google.internal'
const tokenPath = '/computeMetadata/v1/instance/service-accounts/default/token'
const tokenLimits = { timeoutMs: 2_000, bytesMax: 65_536 }
const lifeSeconds = 3_600
/** A token is renewed this long before it expires, to allow for clock differences and requests in progress. */
const marginSeconds = 300

const Credentials = z.object({
  type: z.literal('service_account'),
  private_key_id: z.string(),
  private_key: z.string(),
  client_email: z.string(),
})
const MetadataToken = z.object({ access_token: z.string(), expires_in: z.number() })

interface Token {
  readonly text: string
  readonly endsAtMs: number
}

/**
 * Bearer tokens for one Google API: a JWT that the service account signs itself, or a token from the machine's metadata server. Sources: AIP-4111
 * (self-signed JWT), "Authenticate workloads to Google Cloud APIs" (metadata server).
 */
function createGcpTokens(
  source: Pick<GcpKmsSource, 'credentialsFile' | 'metadataUrl'>,
  own: { readonly outbound: Pick<Outbound, 'exchange'>; readonly clock: Clock; readonly audience: string },
): { token(): Promise<string> } {
  const account = source.credentialsFile === undefined ? undefined : readAccount(source.credentialsFile)
  let token: Token | undefined
  return {
    async token() {
      const nowMs = own.clock.now().getTime()
      if (token === undefined || token.endsAtMs - marginSeconds * 1_000 <= nowMs)
        token =
          account === undefined
            ? await fetchMetadataToken(source.metadataUrl ?? metadataServer, own.outbound, nowMs)
            : signToken(account, own.audience, nowMs)
      return token.text
    },
  }
}

interface Account {
  readonly email: string
  readonly kid: string
  readonly key: KeyObject
}

function readAccount(file: string): Account {
  const read = Credentials.safeParse(JSON.parse(readFileSync(file, 'utf8')))
  // The parser's message is omitted, because it may contain the file's content.
  if (!read.success) throw new Error(`${file} is not the key file of a Google service account`)
  const { client_email: email, private_key_id: kid, private_key: pem } = read.data
  return { email, kid, key: createPrivateKey(pem) }
}

function signToken({ email, kid, key }: Account, audience: string, nowMs: number): Token {
  const issued = Math.floor(nowMs / 1_000)
  const header = { alg: 'RS256', typ: 'JWT', kid }
  const claims = { iss: email, sub: email, aud: audience, iat: issued, exp: issued + lifeSeconds }
  const input = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(input), key).toString('base64url')
  return { text: `${input}.${signature}`, endsAtMs: (issued + lifeSeconds) * 1_000 }
}

async function fetchMetadataToken(url: string, outbound: Pick<Outbound, 'exchange'>, nowMs: number): Promise<Token> {
  const headers = { 'metadata-flavor': 'Google' }
  const { status, json } = await outbound.exchange({ method: 'GET', url: `${url}${tokenPath}`, headers }, tokenLimits)
  if (status !== 200) throw new Error(`the metadata server returned no token: status ${status}`)
  const { access_token: text, expires_in: seconds } = MetadataToken.parse(json)
  return { text, endsAtMs: nowMs + seconds * 1_000 }
}
