import type { ByteRange } from '../../../files/index.ts'

/** The response to a request for a file: all of it, a part, not modified, or a refusal. */
export type Portion =
  | { readonly kind: 'whole' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'part'; readonly range: ByteRange }

interface Conditions {
  readonly range?: string | undefined
  readonly 'if-range'?: string | undefined
  readonly 'if-none-match'?: string | undefined
}

/**
 * Returns which bytes answer a GET of `size` bytes whose strong entity tag is `etag`. The whole file answers several ranges,
 * units other than bytes, malformed ranges, and a range whose `If-Range` names another content. An `If-Range` with a date never
 * matches, since the service sends no Last-Modified. Source: RFC 9110 sections 13.1.2, 13.1.5, 13.2.2, 14.1.2 and 14.2.
 */
export function portionOf(
  requested: Conditions,
  { size, etag }: { readonly size: number; readonly etag: string },
): Portion {
  if (namesTag(requested['if-none-match'], etag)) return { kind: 'unchanged' }
  const ifRange = requested['if-range']?.trim()
  if (requested.range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'whole' }
  const [, first, last] = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(requested.range.trim()) ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return { kind: 'whole' }
  return first === ''
    ? suffixOf(Number(last), size)
    : fromTo(Number(first), last === '' ? size - 1 : Number(last), size)
}

function suffixOf(length: number, size: number): Portion {
  if (length === 0 || size === 0) return { kind: 'outside' }
  const kept = Math.min(length, size)
  return { kind: 'part', range: { offset: size - kept, length: kept } }
}

function fromTo(first: number, last: number, size: number): Portion {
  if (first >= size) return { kind: 'outside' }
  if (last < first) return { kind: 'whole' }
  return { kind: 'part', range: { offset: first, length: Math.min(last, size - 1) - first + 1 } }
}

/** Weak comparison, as If-None-Match requires. */
function namesTag(field: string | undefined, etag: string): boolean {
  if (field === undefined) return false
  return field.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
