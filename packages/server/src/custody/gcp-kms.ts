import { z } from 'zod'
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'
import { crc32c } from './crc32c.ts'
import { unavailable } from './errors.ts'
import type { GcpKmsSource } from './gcp-token.ts'
import { createGcpTokens } from './gcp-token.ts'
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
  own: {
    readonly outbound: Pick<Outbound, 'exchange'>
    readonly clock: Clock
    readonly fingerprint: string
  },
): KeyEncryption {
  const tokens = createGcpTokens(source, { ...own, audience: `${service}/` })
  const request = async (verb: 'encrypt' | 'decrypt', body: Readonly<Record<string, string>>): Promise<unknown> => {
    const url = `${source.endpoint ?? service}/v1/${source.key}:${verb}`
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${await tokens.token().catch(asUnavailable)}`,
    }
    const { status, json } = await own.outbound
      .exchange({ method: 'POST', url, headers, body: JSON.stringify(body) }, limits)
      .catch(asUnavailable)
    if (status !== 200) throw refusal(verb, status)
    return json
  }
  return {
    fingerprint: own.fingerprint,
    async wrap(dataKey, associatedData) {
      const answer = Encrypted.parse(
        await request('encrypt', { ...checked('plaintext', dataKey), ...authenticated(associatedData) }),
      )
      if (!answer.name.startsWith(`${source.key}/cryptoKeyVersions/`)) throw new Error('Cloud KMS used another key')
      return intact(answer.ciphertext, answer.ciphertextCrc32c)
    },
    async unwrap(wrapped, associatedData) {
      const answer = Decrypted.parse(
        await request('decrypt', { ...checked('ciphertext', wrapped), ...authenticated(associatedData) }),
      )
      return intact(answer.plaintext, answer.plaintextCrc32c)
    },
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
