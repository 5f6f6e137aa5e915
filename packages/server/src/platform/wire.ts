import { z } from 'zod'
import { instantOf } from './clock.ts'
import { failPlatform } from './errors.ts'
import type { Page } from './operation.ts'

/** Text that PostgreSQL can hold: no NUL and no lone surrogate, at most `charactersMax` UTF-16 units. */
export function text(charactersMax: number, charactersMin = 0) {
  return z
    .string()
    .min(charactersMin)
    .max(charactersMax)
    .refine(isStorableText, 'must be well-formed text without NUL characters')
}

function isStorableText(value: string): boolean {
  return !value.includes('\u0000') && value.isWellFormed()
}

/** A point in time on the wire: ISO 8601, UTC, milliseconds. Given as a Date, written as text. */
export const Instant = z.codec(z.date(), z.iso.datetime(), {
  decode: (instant) => instant.toISOString(),
  encode: (text) => instantOf(text),
})

/** A time in a query: ISO 8601 with a zone. */
export const InstantInput = z.iso.datetime({ offset: true }).transform((value) => instantOf(value))

const jsonDepthMax = 16
const Json: z.ZodType<unknown> = z
  .unknown()
  .refine(
    (value) => depthOf(value) <= jsonDepthMax && isStorable(value),
    'must be JSON nested at most 16 levels, of well-formed text without NUL characters',
  )

/** A JSON object of a protocol that others speak, kept as it was sent and read elsewhere; the body's own depth limit bounds it. */
export const StorableJsonObject = z
  .record(z.string(), z.unknown())
  .refine(isStorable, 'must be JSON of well-formed text without NUL characters')

/** A free-form object kept as it was sent, at most 16 KiB as text with its numbers written out. */
export const Metadata = z
  .record(text(128), Json)
  .refine((value) => JSON.stringify(value).length + zerosOf(value) <= 16_384, 'must be at most 16 KiB of JSON')

/** What jsonb adds in writing numbers out: `1e308` takes three hundred digits in the database and in every answer from it. */
function zerosOf(value: unknown): number {
  if (typeof value === 'number') return Math.abs(Number(String(value).split('e')[1] ?? 0))
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce((sum: number, inner) => sum + zerosOf(inner), 0)
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Object.values(value).reduce((deepest: number, inner) => Math.max(deepest, depthOf(inner)), 0)
}

/** Whether jsonb can hold it: it takes neither NUL nor half a surrogate pair, in names as in texts. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return isStorableText(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, inner]) => isStorableText(name) && isStorable(inner))
}

/** `?limit=` and `?cursor=` of every list: 50 by default, at most 500; the cursor is opaque. */
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z.string().max(512).optional(),
})

/** The sort key inside a cursor that this service gave out; anything else is a fault of the request. */
export function openCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const key = Buffer.from(cursor, 'base64url').toString('utf8')
  const valid = /^[a-z]{2,8}_[0-9a-z]{26}$/.test(key) || /^[0-9]{1,19}$/.test(key)
  if (!valid || Buffer.from(key).toString('base64url') !== cursor) {
    throw failPlatform('validation-error', {
      errors: [{ path: '/cursor', message: 'is not a cursor that this service gave' }],
    })
  }
  return key
}

/** A page from rows of which one more than `limit` was asked for; `key` names the row that the next page starts after. */
export function pageOf<T>(rows: readonly T[], limit: number, key: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const more = rows.length > limit && last !== undefined
  return { items, next: more ? Buffer.from(key(last)).toString('base64url') : undefined }
}
