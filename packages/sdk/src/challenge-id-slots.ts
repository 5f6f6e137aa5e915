import { isRecord } from './problem.ts'

/**
 * Only ids of this length are substituted. Three bytes are four base64 characters, so another length would shift
 * everything after it.
 */
const idLength = 66
const placeholder = 'x'.repeat(idLength)

/**
 * Returns a function that writes a challenge id into each offer (`extra.challengeId`) of a `PAYMENT-REQUIRED` header
 * that many challenges share. The header is decoded once. Spaces between members align each id to three bytes, so
 * that it can be replaced in the base64 text. Undefined for a header without offers.
 */
export function challengeIdSlots(header: string): ((id: string) => string) | undefined {
  const required = decoded(header)
  if (required === undefined || !Array.isArray(required.accepts)) return undefined
  const accepts = required.accepts.map((offer: unknown) => withExtra(offer, placeholder))
  const [first = '', ...others] = JSON.stringify({ ...required, accepts }).split(`"challengeId":"${placeholder}"`)
  const utf8 = new TextEncoder()
  let length = 0
  const parts = [first, ...others].map((part, index) => {
    const before = index === 0 ? part : `"${part}`
    if (index === others.length) return base64(utf8.encode(before))
    const opening = `${before}"challengeId":`
    length += utf8.encode(opening).length + 1
    const spaces = (3 - (length % 3)) % 3
    length += spaces + idLength
    return base64(utf8.encode(`${opening}${' '.repeat(spaces)}"`))
  })
  return (id) => (id.length === idLength ? parts.join(btoa(id)) : header)
}

function withExtra(offer: unknown, challengeId: string): unknown {
  if (!isRecord(offer)) return offer
  return { ...offer, extra: { ...(isRecord(offer.extra) && offer.extra), challengeId } }
}

function decoded(header: string): Record<string, unknown> | undefined {
  try {
    const bytes = Uint8Array.from(atob(header), (character) => character.charCodeAt(0))
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

function base64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}
