import { decodeBase64, encodeBase64 } from './base64.ts'

const prefix = 'whsec_'
const bytesMin = 24
const bytesMax = 64

/**
 * Composes a webhook secret: `whsec_` and the base64 of 24 to 64 random bytes. Throws a `RangeError` for fewer or more.
 * Source: Standard Webhooks 1.0.0, section "Signature scheme".
 *
 * @example
 * composeWebhookSecret(new Uint8Array(24)) // 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
 */
export function composeWebhookSecret(random: Uint8Array): string {
  if (random.length < bytesMin || random.length > bytesMax) throw new RangeError('a webhook secret has 24 to 64 bytes')
  return prefix + encodeBase64(random)
}

/**
 * Returns the bytes of a webhook secret, the key of a Standard Webhooks signature. Returns `undefined` for any text
 * that `composeWebhookSecret` does not produce. The key of `X-Service-Signature` is the whole text instead, including
 * the prefix.
 *
 * @example
 * parseWebhookSecret('whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')?.length // 24
 */
export function parseWebhookSecret(text: string): Uint8Array | undefined {
  if (!text.startsWith(prefix) || text.length > prefix.length + 4 * Math.ceil(bytesMax / 3)) return undefined
  const bytes = decodeBase64(text.slice(prefix.length))
  return bytes !== undefined && bytes.length >= bytesMin && bytes.length <= bytesMax ? bytes : undefined
}
