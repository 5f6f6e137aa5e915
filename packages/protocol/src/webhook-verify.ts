import { decodeBase64 } from './base64.ts'
import { hexToBytes } from './bytes.ts'
import type { VerifyEd25519 } from './seal-verify.ts'
import { utf8 } from './utf8.ts'
import { parseWebhookSecret } from './webhook-secret.ts'
import {
  type HmacSha256,
  hmacSha256,
  isWebhookId,
  isWebhookTimestamp,
  serviceSigningText,
  standardSigningText,
} from './webhook-signature.ts'

/**
 * A received webhook: the values of `X-Service-Timestamp` and `X-Service-Signature`, and the raw body before any
 * parsing.
 */
export type ServiceWebhook = { readonly timestamp: string; readonly signature: string; readonly body: Uint8Array }

/** A received webhook with the values of the Standard Webhooks headers. */
export type StandardWebhook = ServiceWebhook & { readonly id: string }

/**
 * The time of the verification, in Unix seconds, and the largest difference from the timestamp that is accepted, in
 * either direction (default 300).
 */
export type WebhookMoment = { readonly nowSeconds: number; readonly toleranceSeconds?: number | undefined }

/** The reason why a webhook is not accepted as sent by the service. */
export type WebhookFault =
  | 'id-malformed'
  | 'timestamp-malformed'
  | 'timestamp-too-old'
  | 'timestamp-too-new'
  | 'signature-malformed'
  | 'signature-mismatch'

/** The maximum length of a signature header, in characters. A rotation with an Ed25519 signature needs about 190. */
const webhookSignatureLengthMax = 4_096

/** The maximum number of signatures in one header. More are refused, because verifying them costs time. */
const webhookSignaturesMax = 16

const toleranceSecondsDefault = 300

/**
 * Verifies a webhook by its `X-Service-Signature`. Returns the fault, or `undefined` if one of the signatures was made
 * with one of the secrets (as text). Signatures of other kinds are ignored. Throws a `RangeError` for a malformed
 * secret, for an empty list and for a time that is not a number.
 *
 * @example
 * const received = { timestamp: '1795305600', signature: 'v1=00', body: new TextEncoder().encode('{}') }
 * verifyServiceWebhook(received, ['whsec_' + 'A'.repeat(43) + '='], { nowSeconds: 1795309200 }) // 'timestamp-too-old'
 */
export function verifyServiceWebhook(
  received: ServiceWebhook,
  secrets: readonly string[],
  moment: WebhookMoment,
  mac: HmacSha256 = hmacSha256,
): WebhookFault | undefined {
  const keys = keysOf(secrets).map(({ text }) => text)
  const fault = whyNotNow(received.timestamp, moment) ?? whyNotSignatures(received.signature, ',')
  if (fault !== undefined) return fault
  const signed = serviceSigningText(received.timestamp, received.body)
  return isAnySigned(entries(received.signature, ',', hexAfter), keys, (key) => mac(key, signed))
}

/**
 * Verifies a webhook by its Standard Webhooks headers and the shared secrets. Returns the fault, or `undefined` if
 * one `v1` signature is valid. Other versions are ignored. Throws as `verifyServiceWebhook`. Source: Standard
 * Webhooks 1.0.0, section "Verifying webhook authenticity"; stricter than its reference, which reads `1614265330abc`
 * as a timestamp.
 *
 * @example
 * const received = { id: 'evt_1', timestamp: '1795305600', signature: 'v1,AA==', body: new TextEncoder().encode('{}') }
 * verifyStandardWebhook(received, ['whsec_' + 'A'.repeat(43) + '='], { nowSeconds: 1795305600 }) // 'signature-mismatch'
 */
export function verifyStandardWebhook(
  received: StandardWebhook,
  secrets: readonly string[],
  moment: WebhookMoment,
  mac: HmacSha256 = hmacSha256,
): WebhookFault | undefined {
  const keys = keysOf(secrets).map(({ bytes }) => bytes)
  const fault = whyNotStandard(received, moment)
  if (fault !== undefined) return fault
  const signed = standardSigningText(received.id, received.timestamp, received.body)
  return isAnySigned(entries(received.signature, ' ', base64After('v1', 32)), keys, (key) => mac(key, signed))
}

/**
 * Verifies the `v1a` signatures with public Ed25519 keys (32 bytes each), for receivers without a secret. The keys must be those that sign to your
 * organisation and environment: `/.well-known/jwks.json?organisation=org_…&environment=live`. Returns the fault, or `undefined` if a signature is valid. Throws a `RangeError` for a time that is not a number, for
 * an empty list of keys and for a key of another length. The caller gets what `verify` throws.
 *
 * @example
 * const received = { id: 'evt_1', timestamp: '1795305600', signature: 'v1a,' + 'A'.repeat(86) + '==', body: utf8('{}') }
 * await verifyWebhookByKey(received, [new Uint8Array(32)], { nowSeconds: 1795305600 }, () => true) // undefined
 * await verifyWebhookByKey(received, [new Uint8Array(32)], { nowSeconds: 1795305600 }, () => false) // 'signature-mismatch'
 */
export async function verifyWebhookByKey(
  received: StandardWebhook,
  publicKeys: readonly Uint8Array[],
  moment: WebhookMoment,
  verify: VerifyEd25519,
): Promise<WebhookFault | undefined> {
  if (publicKeys.length === 0 || publicKeys.some((key) => key.length !== 32))
    throw new RangeError('an Ed25519 public key has 32 bytes, and at least one is needed')
  const fault = whyNotStandard(received, moment)
  if (fault !== undefined) return fault
  const signed = standardSigningText(received.id, received.timestamp, received.body)
  const signatures = entries(received.signature, ' ', base64After('v1a', 64))
  for (const key of publicKeys)
    for (const signature of signatures) if (await verify(key, signed, signature)) return undefined
  return 'signature-mismatch'
}

function keysOf(secrets: readonly string[]): { text: Uint8Array; bytes: Uint8Array }[] {
  if (secrets.length === 0) throw new RangeError('a webhook is verified with at least one secret')
  return secrets.map((secret) => {
    const bytes = parseWebhookSecret(secret)
    if (bytes === undefined) throw new RangeError('not a webhook secret: whsec_ and the base64 of 24 to 64 bytes')
    return { text: utf8(secret), bytes }
  })
}

function whyNotStandard(received: StandardWebhook, moment: WebhookMoment): WebhookFault | undefined {
  if (!isWebhookId(received.id)) return 'id-malformed'
  return whyNotNow(received.timestamp, moment) ?? whyNotSignatures(received.signature, ' ')
}

function whyNotNow(timestamp: string, moment: WebhookMoment): WebhookFault | undefined {
  const { nowSeconds, toleranceSeconds = toleranceSecondsDefault } = moment
  if (!Number.isFinite(nowSeconds)) throw new RangeError('the time is not a number of seconds')
  if (!Number.isFinite(toleranceSeconds) || toleranceSeconds < 0)
    throw new RangeError('the tolerance is not a number of seconds')
  if (!isWebhookTimestamp(timestamp)) return 'timestamp-malformed'
  const ageSeconds = Math.floor(nowSeconds) - Number(timestamp)
  if (ageSeconds > toleranceSeconds) return 'timestamp-too-old'
  return ageSeconds < -toleranceSeconds ? 'timestamp-too-new' : undefined
}

function whyNotSignatures(header: string, separator: ',' | ' '): WebhookFault | undefined {
  if (header === '' || header.length > webhookSignatureLengthMax) return 'signature-malformed'
  return header.split(separator).length > webhookSignaturesMax ? 'signature-malformed' : undefined
}

type ReadEntry = (entry: string) => Uint8Array | undefined

function entries(header: string, separator: ',' | ' ', read: ReadEntry): Uint8Array[] {
  return header.split(separator).flatMap((entry) => read(entry.trim()) ?? [])
}

const hexAfter: ReadEntry = (entry) =>
  /^sha256=[0-9a-f]{64}$/.test(entry) ? hexToBytes(`0x${entry.slice(entry.indexOf('=') + 1)}`) : undefined

function base64After(version: string, size: number): ReadEntry {
  return (entry) => {
    const [name, text, ...more] = entry.split(',')
    if (name !== version || text === undefined || more.length > 0) return undefined
    const bytes = decodeBase64(text)
    return bytes?.length === size ? bytes : undefined
  }
}

function isAnySigned(
  given: readonly Uint8Array[],
  keys: readonly Uint8Array[],
  sign: (key: Uint8Array) => Uint8Array,
): WebhookFault | undefined {
  if (given.length === 0) return 'signature-mismatch'
  const expected = keys.map(sign)
  const isSigned = expected.some((own) => given.some((signature) => isSameSecret(own, signature)))
  return isSigned ? undefined : 'signature-mismatch'
}

/** Compares in constant time, so that a signature cannot be guessed byte by byte. */
function isSameSecret(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false
  let difference = 0
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0)
  return difference === 0
}
