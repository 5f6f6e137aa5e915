import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { encodeBase64 } from './base64.ts'
import { bytesToHex, concatBytes } from './bytes.ts'
import { utf8 } from './utf8.ts'
import { parseWebhookSecret } from './webhook-secret.ts'

/** HMAC-SHA256 (RFC 2104) as a function, so that a server can pass a faster one. Returns 32 bytes. */
export type HmacSha256 = (key: Uint8Array, message: Uint8Array) => Uint8Array

/** Signs with a private Ed25519 key (RFC 8032) of the caller. Returns 64 bytes. */
export type SignEd25519 = (message: Uint8Array) => Uint8Array

/**
 * One attempt to deliver an event. `id` is the event's and is the same for every attempt. `timestamp` is the time of
 * this attempt in whole Unix seconds. `body` has the exact bytes that are sent.
 */
export type WebhookMessage = { readonly id: string; readonly timestamp: number; readonly body: Uint8Array }

/** The keys that sign an attempt: the currently valid secrets, newest first, and the service's own key if it has one. */
export type WebhookSigners = {
  /** As shown to their owner (`whsec_…`); two while a rotation lasts. */
  readonly secrets: readonly string[]
  readonly signEd25519?: SignEd25519 | undefined
  /** A faster HMAC than the one in JavaScript. */
  readonly hmac?: HmacSha256 | undefined
}

/** The signature headers of an attempt: those of the service, and those of Standard Webhooks. */
export type WebhookHeaders = {
  readonly 'x-service-signature': string
  readonly 'x-service-timestamp': string
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

const idPattern = /^[A-Za-z0-9_-]{1,128}$/
const timestampPattern = /^(?:0|[1-9]\d{0,11})$/

/** HMAC-SHA256 in JavaScript, for runtimes without a faster implementation. */
export const hmacSha256: HmacSha256 = (key, message) => hmac(sha256, key, message)

/**
 * Returns the signature headers of an attempt. Throws a `RangeError` for input that no receiver could verify: no secret
 * or a malformed one, an id with anything but letters, digits, `_` and `-` (a `.` in it would make one signature valid
 * for two messages), a timestamp that is not whole seconds. Source: Standard Webhooks 1.0.0,
 * sections "Webhook Headers" and "Signature scheme".
 *
 * @example
 * const message = { id: 'evt_1', timestamp: 1795305600, body: new TextEncoder().encode('{}') }
 * signWebhook(message, { secrets: ['whsec_' + 'A'.repeat(43) + '='] })['webhook-timestamp'] // '1795305600'
 * Object.keys(signWebhook(message, { secrets: ['whsec_' + 'A'.repeat(43) + '='] })) // [ 'x-service-signature', 'x-service-timestamp', 'webhook-id', 'webhook-timestamp', 'webhook-signature' ]
 */
export function signWebhook(message: WebhookMessage, signers: WebhookSigners): WebhookHeaders {
  const { secrets, signEd25519, hmac: mac = hmacSha256 } = signers
  const { id, timestamp, body } = message
  const sign = createWebhookSigner(secrets, (key) => macBy(mac, key))
  const text = standardSigningText(id, timestampOf(timestamp), body)
  return sign({ id, timestamp, text }, signEd25519?.(text))
}

/** HMAC-SHA256 by one key as text: hex digits without `0x`, or base64. */
export type WebhookMac = (message: Uint8Array, encoding: 'hex' | 'base64') => string

/** An attempt with its signing input: `text` is what `standardSigningText` returns for the id, the timestamp and the body. */
export type WebhookSigningInput = Pick<WebhookMessage, 'id' | 'timestamp'> & { readonly text: Uint8Array }

/** Returns the signature headers of an attempt, with the 64 bytes of its Ed25519 signature if it has one. Throws as `signWebhook` does. */
export type WebhookSigner = (input: WebhookSigningInput, ed25519?: Uint8Array) => WebhookHeaders

/**
 * Returns a function that signs as `signWebhook` does, with these secrets, newest first. It reads them once: a server that signs many messages
 * prepares each key once, and one signing input serves several receivers. `macOf` returns the HMAC of a key. Throws a `RangeError` for no secret or
 * a malformed one.
 *
 * @example
 * const secret = 'whsec_' + 'A'.repeat(43) + '='
 * const text = standardSigningText('evt_1', '1795305600', utf8('{}'))
 * createWebhookSigner([secret])({ id: 'evt_1', timestamp: 1795305600, text })['webhook-id'] // 'evt_1'
 */
export function createWebhookSigner(
  secrets: readonly string[],
  macOf: (key: Uint8Array) => WebhookMac = (key) => macBy(hmacSha256, key),
): WebhookSigner {
  if (secrets.length === 0) throw new RangeError('a webhook is signed with at least one secret')
  const own = secrets.map((secret) => macOf(utf8(secret)))
  const standard = secrets.map((secret) => macOf(keyOf(secret)))
  return ({ id, timestamp: seconds, text }, ed25519) => {
    const timestamp = timestampOf(seconds)
    if (!isWebhookId(id)) throw new RangeError('not a webhook id')
    // The service's own signature is of the same text without the id, which is ASCII.
    const ownText = text.subarray(id.length + 1)
    const symmetric = standard.map((mac) => `v1,${mac(text, 'base64')}`)
    const all = ed25519 === undefined ? symmetric : [...symmetric, `v1a,${encodeBase64(ed25519)}`]
    return {
      'x-service-signature': own.map((mac) => `sha256=${mac(ownText, 'hex')}`).join(','),
      'x-service-timestamp': timestamp,
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': all.join(' '),
    }
  }
}

function timestampOf(seconds: number): string {
  const timestamp = String(seconds)
  if (!isWebhookTimestamp(timestamp)) throw new RangeError('a webhook timestamp is a whole number of seconds')
  return timestamp
}

function macBy(hmac: HmacSha256, key: Uint8Array): WebhookMac {
  return (message, encoding) => {
    const bytes = hmac(key, message)
    return encoding === 'hex' ? bytesToHex(bytes).slice(2) : encodeBase64(bytes)
  }
}

/** Returns the signing input of the service's own signature: `<timestamp>.<body>`. See docs/webhooks.md. */
export function serviceSigningText(timestamp: string, body: Uint8Array): Uint8Array {
  return concatBytes(utf8(`${timestamp}.`), body)
}

/**
 * Returns the signing input of a Standard Webhooks signature: `<id>.<timestamp>.<body>`. Throws a `RangeError` for an id that could be read
 * as more than an id. Source: Standard Webhooks 1.0.0, section "Signature scheme".
 *
 * @example
 * new TextDecoder().decode(standardSigningText('evt_1', '1795305600', new TextEncoder().encode('{}'))) // 'evt_1.1795305600.{}'
 */
export function standardSigningText(id: string, timestamp: string, body: Uint8Array): Uint8Array {
  if (!isWebhookId(id)) throw new RangeError('not a webhook id')
  return concatBytes(utf8(`${id}.${timestamp}.`), body)
}

/**
 * Whether a text can be a webhook id: 1 to 128 letters, digits, `_` and `-`.
 *
 * @example
 * isWebhookId('evt_1') // true
 * isWebhookId('evt.1') // false
 */
export function isWebhookId(text: string): boolean {
  return idPattern.test(text)
}

/**
 * Whether a text is a webhook timestamp: Unix seconds in digits alone, at most 12 of them, no zeros in front.
 *
 * @example
 * isWebhookTimestamp('1795305600') // true
 * isWebhookTimestamp('1795305600.5') // false
 */
export function isWebhookTimestamp(text: string): boolean {
  return timestampPattern.test(text)
}

function keyOf(secret: string): Uint8Array {
  const key = parseWebhookSecret(secret)
  if (key === undefined) throw new RangeError('not a webhook secret')
  return key
}
