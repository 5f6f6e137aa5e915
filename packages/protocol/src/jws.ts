import { decodeBase64Url, encodeBase64Url } from './base64.ts'
import { canonicalJson } from './canonical-json.ts'
import { jsonObjectOf } from './mpp/encoding.ts'
import { utf8 } from './utf8.ts'
import type { JsonObject } from './x402/messages.ts'

/**
 * The header of a JWS that is signed with Ed25519. `kid` names the key that verifies it, for example
 * `did:web:pay.example.com#seal-1`.
 */
export type JwsHeader = { readonly alg: 'EdDSA'; readonly kid: string }

/** The parts of a JWS. They are unverified until `signature` has been checked over `signingInput`. */
export type Jws = {
  readonly header: JwsHeader
  readonly payload: JsonObject
  readonly signingInput: Uint8Array
  readonly signature: Uint8Array
}

const lengthMax = 65_536

/**
 * Returns the signing input of a JWS: header and payload, each base64url. The payload is canonical JSON (RFC 8785), so
 * that equal payloads have equal text. Source: RFC 7515 section 5.1.
 *
 * @example
 * jwsSigningInput({ alg: 'EdDSA', kid: 'k1' }, { a: 1 }) // 'eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0.eyJhIjoxfQ'
 */
export function jwsSigningInput(header: JwsHeader, payload: JsonObject): string {
  return `${encodeBase64Url(utf8(JSON.stringify(header)))}.${encodeBase64Url(utf8(canonicalJson(payload)))}`
}

/**
 * Composes a compact JWS (RFC 7515 section 7.1).
 *
 * @example
 * composeJws('a.b', new Uint8Array([1, 2])) // 'a.b.AQI'
 */
export function composeJws(signingInput: string, signature: Uint8Array): string {
  return `${signingInput}.${encodeBase64Url(signature)}`
}

/**
 * Parses a compact JWS whose header has `alg: EdDSA` and a `kid`. Returns `undefined` for anything else, such as `alg:
 * none`. Does not verify the signature.
 *
 * @example
 * parseJws('not a JWS') // undefined
 */
export function parseJws(text: string): Jws | undefined {
  const [head, body, signed, ...more] = text.length > lengthMax ? [] : text.split('.')
  if (head === undefined || body === undefined || signed === undefined || more.length > 0) return undefined
  const header = jsonObjectOf(head)
  const payload = jsonObjectOf(body)
  const signature = decodeBase64Url(signed)
  if (header === undefined || payload === undefined || signature?.length !== 64) return undefined
  const { alg, kid } = header
  if (alg !== 'EdDSA' || typeof kid !== 'string') return undefined
  return { header: { alg, kid }, payload, signingInput: utf8(`${head}.${body}`), signature }
}
