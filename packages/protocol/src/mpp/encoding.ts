import { decodeBase64Url, encodeBase64Url } from '../base64.ts'
import { canonicalJson } from '../canonical-json.ts'
import { decodeUtf8, utf8 } from '../utf8.ts'
import { isObject } from '../x402/fields.ts'
import type { JsonObject } from '../x402/messages.ts'

/**
 * The maximum length of the text of a `request`, an `opaque` or a receipt, in characters. mppx 0.11 has the same limit.
 */
export const mppJsonLengthMax = 16_384

/**
 * Encodes a `request` or an `opaque`: base64url without padding, of canonical JSON. mppx serializes the JSON again
 * before it echoes a challenge, and only canonical JSON then keeps its text. Throws a `TypeError` for values that JSON
 * cannot represent. Source: draft-httpauth-payment-00, "Challenge parameters"; RFC 8785.
 *
 * @example
 * encodeMppJson({ amount: '10000' }) // 'eyJhbW91bnQiOiIxMDAwMCJ9'
 */
export function encodeMppJson(value: JsonObject): string {
  return encodeBase64Url(utf8(canonicalJson(value)))
}

/**
 * Decodes a JSON object from a base64url text of at most 16 KiB. Returns `undefined` for anything else. Padding is
 * allowed, as in mppx.
 *
 * @example
 * decodeMppJson('eyJhbW91bnQiOiIxMDAwMCJ9') // { amount: '10000' }
 */
export function decodeMppJson(text: string): JsonObject | undefined {
  return text.length > mppJsonLengthMax ? undefined : decodeJsonObject(text)
}

/** `decodeMppJson` without its limit, for a caller that has already checked the length. */
export function decodeJsonObject(text: string): JsonObject | undefined {
  return jsonObjectOf(text.replace(/={1,2}$/, ''))
}

/** The JSON object in a base64url text without padding; `undefined` for anything else. */
export function jsonObjectOf(text: string): JsonObject | undefined {
  const bytes = decodeBase64Url(text)
  const json = bytes === undefined ? undefined : decodeUtf8(bytes)
  if (json === undefined) return undefined
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
