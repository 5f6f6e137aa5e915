import { parseInstant } from '@purser/protocol'
import { z } from 'zod'
import { instantOf } from './clock.ts'
import { failPlatform } from './errors.ts'
import type { Page } from './operation.ts'

/** Text of at most `charactersMax` UTF-16 units. Every request is checked by `unstorableTexts` before an operation reads it. */
export function text(charactersMax: number, charactersMin = 0) {
  return z.string().min(charactersMin).max(charactersMax)
}

export const unstorableText = 'must be well-formed text without NUL characters'

/**
 * Where a request holds text that PostgreSQL cannot: a NUL or a lone surrogate, in a value or in a name. The first `pathsMax` paths.
 * The only check of its kind: each operation would otherwise need one per field.
 */
export function unstorableTexts(value: unknown, pathsMax = 100): (readonly PropertyKey[])[] {
  if (typeof value === 'string') return isStorableText(value) ? [] : [[]]
  if (typeof value !== 'object' || value === null) return []
  const found: (readonly PropertyKey[])[] = []
  for (const [name, inner] of Object.entries(value)) {
    if (!isStorableText(name)) found.push([name.toWellFormed().replaceAll('\u0000', '\ufffd')])
    else for (const path of unstorableTexts(inner, pathsMax - found.length)) found.push([name, ...path])
    if (found.length >= pathsMax) break
  }
  return found
}

function isStorableText(value: string): boolean {
  return !value.includes('\u0000') && value.isWellFormed()
}

/** A point in time on the wire: ISO 8601, UTC, milliseconds. Given as a Date, written as text. */
export const Instant = z.codec(z.date(), z.iso.datetime(), {
  decode: (instant) => instant.toISOString(),
  encode: (text) => instantOf(text),
})

/** A time in a request: ISO 8601 in any form that names a day; UTC where it names no zone. */
export const InstantInput = z
  .string()
  .transform((written, ctx) => {
    const ms = parseInstant(written)
    if (ms !== undefined) return instantOf(ms)
    ctx.addIssue({ code: 'custom', message: 'must be an ISO 8601 date, with a time or without one' })
    return z.NEVER
  })
  .meta({ format: 'date-time', example: '2026-11-22T09:30:00Z' })

const jsonDepthMax = 16
const Json: z.ZodType<unknown> = z
  .unknown()
  .refine((value) => depthOf(value) <= jsonDepthMax, 'must be JSON nested at most 16 levels')

/** A JSON object that is kept as it was sent; the body's own depth limit bounds it. */
export const AnyJsonObject = z.record(z.string(), z.unknown())

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
