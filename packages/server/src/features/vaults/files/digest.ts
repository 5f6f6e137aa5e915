import { createHash, type Hash } from 'node:crypto'
import { failPlatform } from '../../../platform/errors.ts'

/** A digest that the sender claims. */
export interface ClaimedDigest {
  readonly algorithm: 'sha256' | 'sha512'
  readonly base64: string
}

const algorithms: Readonly<Record<string, ClaimedDigest['algorithm']>> = { 'sha-256': 'sha256', 'sha-512': 'sha512' }
const memberPattern = /^([a-z*][a-z0-9_.*-]{0,63})=:([A-Za-z0-9+/]{0,128}={0,2}):$/

/**
 * Returns the digests of a `Content-Digest` field that can be checked, at most one of each algorithm: the field is a dictionary, of whose members with
 * one name the last one counts. Those of other algorithms are ignored, as the specification permits. A malformed field is a fault of the request,
 * because its sender expects a check. Source: RFC 9530 sections 2 and 5, RFC 8941 section 3.2.
 */
export function readContentDigest(field: string | undefined): readonly ClaimedDigest[] {
  const claimed = new Map<ClaimedDigest['algorithm'], ClaimedDigest>()
  for (const member of field?.split(',') ?? []) {
    const [, name, base64] = memberPattern.exec(member.trim()) ?? []
    if (name === undefined || base64 === undefined) {
      const message = 'must be a Content-Digest (RFC 9530), such as sha-256=:…:'
      throw failPlatform('validation-error', { errors: [{ path: '/Content-Digest', message }] })
    }
    const algorithm = algorithms[name]
    if (algorithm !== undefined) claimed.set(algorithm, { algorithm, base64 })
  }
  return [...claimed.values()]
}

/** Digests that are computed while their content is read. */
export interface DigestCheck {
  update(chunk: Uint8Array): void
  /** Whether the content matches the claimed digests; true if none was claimed. Call it once. */
  matches(): boolean
}

export function checkOf(claimed: readonly ClaimedDigest[]): DigestCheck {
  const hashes: readonly (readonly [Hash, string])[] = claimed.map(({ algorithm, base64 }) => [
    createHash(algorithm),
    base64,
  ])
  return {
    update: (chunk) => {
      for (const [hash] of hashes) hash.update(chunk)
    },
    matches: () => hashes.every(([hash, base64]) => hash.digest('base64') === base64),
  }
}

/** Yields the same content and updates the checks with each chunk first. Ends with the error of `verify`, if it throws. */
export async function* watched(
  content: AsyncIterable<Uint8Array>,
  checks: readonly DigestCheck[],
  verify: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    for (const check of checks) check.update(chunk)
    yield chunk
  }
  verify()
}

/** Returns `Repr-Digest` of a whole content, whatever part of it is sent. Source: RFC 9530 section 3. */
export function sha256Field(sha256Hex: string): string {
  return `sha-256=:${Buffer.from(sha256Hex, 'hex').toString('base64')}:`
}
