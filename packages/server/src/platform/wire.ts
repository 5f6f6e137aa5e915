import { parseAddress, parseAmount, parseInstant, zeroAddress } from '@purser/protocol'
import { z } from 'zod'
import { instantOf } from './clock.ts'
import type { ListedRows } from './db/listed-rows.ts'
import { failPlatform } from './errors.ts'
import { wrongKind } from './fault-words.ts'
import { named } from './named.ts'
import type { Page } from './operation.ts'

/** Text of at most `charactersMax` UTF-16 units. Every request is checked by `unstorableTexts` before an operation reads it. */
export function text(charactersMax: number, charactersMin = 0) {
  return z.string().min(charactersMin).max(charactersMax)
}

export const unstorableText = 'must be well-formed text without NUL characters'

/**
 * Paths of text in a request that PostgreSQL cannot store: a NUL or a lone surrogate, in a value or in a name. The first `pathsMax` paths.
 * This is the only such check: otherwise each operation would need one per field.
 */
export function unstorableTexts(value: unknown, pathsMax = 100): (readonly PropertyKey[])[] {
  const found: (readonly PropertyKey[])[] = []
  addUnstorable(value, { found, pathsMax, place: [] })
  return found
}

interface Unstorable {
  readonly found: (readonly PropertyKey[])[]
  readonly pathsMax: number
  /** The names on the way to the value: copied only for a fault, because most values have none. */
  readonly place: string[]
}

function addUnstorable(value: unknown, search: Unstorable): void {
  const { found, pathsMax, place } = search
  if (typeof value === 'string' && !isStorableText(value)) found.push([...place])
  if (typeof value !== 'object' || value === null) return
  for (const name of Object.keys(value)) {
    if (found.length >= pathsMax) return
    if (!isStorableText(name)) found.push([...place, name.toWellFormed().replaceAll('\u0000', '\ufffd')])
    else {
      place.push(name)
      addUnstorable(Reflect.get(value, name), search)
      place.pop()
    }
  }
}

function isStorableText(value: string): boolean {
  return !value.includes('\u0000') && value.isWellFormed()
}

/** A time on the wire: ISO 8601, UTC, milliseconds. A Date in code, text in JSON. */
export const Instant = z.codec(z.date(), z.iso.datetime(), {
  decode: (instant) => instant.toISOString(),
  encode: (text) => instantOf(text),
})

/** The time at which a record was created. */
export const CreatedAt = Instant.describe('When it was created.')

/** A time in a request: ISO 8601 in any form with a date; UTC if it has no zone. */
export const InstantInput = z
  .string()
  .transform((written, ctx) => {
    const ms = parseInstant(written)
    if (ms !== undefined) return instantOf(ms)
    ctx.addIssue({ code: 'custom', message: 'must be an ISO 8601 date, with a time or without one' })
    return z.NEVER
  })
  .meta({ format: 'date-time', example: '2026-11-22T09:30:00Z' })

/**
 * An EVM address in a request, returned EIP-55 checksummed. A wrong checksum is refused, since it indicates a mistyped address, and so is
 * the zero address: money sent to either is lost.
 */
export const EvmAddress = z
  .string()
  .transform((written, ctx) => {
    const address = parseAddress(written)
    if (address !== undefined && address !== zeroAddress) return address
    const message = 'must be 0x and 40 hexadecimal digits, mixed case only with a correct EIP-55 checksum, not zero'
    ctx.addIssue({ code: 'custom', message, params: { problem: 'address-format-invalid' } })
    return z.NEVER
  })
  .meta({ example: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' })

const jsonDepthMax = 16
const Json: z.ZodType<unknown> = z
  .unknown()
  .refine((value) => depthOf(value) <= jsonDepthMax, 'must be JSON nested at most 16 levels')

/** A JSON object that is stored as it was sent; the body's own depth limit bounds it. A record of zod would look at each member, which takes longer than parsing it. */
export const AnyJsonObject = z
  .custom<Record<string, unknown>>((value) => kindOf(value) === 'object', {
    error: ({ input }) => (input === undefined ? 'is missing' : wrongKind('object', input)),
  })
  .meta({ type: 'object', propertyNames: { type: 'string' }, additionalProperties: {} })

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** A free-form object stored as it was sent, at most 16 KiB as text with its numbers expanded. */
export const FreeForm = z
  .record(text(128), Json)
  .refine((value) => JSON.stringify(value).length + zerosOf(value) <= 16_384, 'must be at most 16 KiB of JSON')

/** Most members of metadata: each is checked for each response, and each text, number and boolean of some is in an index. */
const metadataMembersMax = 50

/** Metadata of a resource, chosen by the customer. */
export const Metadata = FreeForm.refine(
  (value) => Object.keys(value).length <= metadataMembersMax,
  `must have at most ${metadataMembersMax} members`,
).describe(`Your own data, at most 16 KiB of JSON and ${metadataMembersMax} members. Responses contain it.`)

/** Metadata in a response. */
export const StoredMetadata = z.record(z.string(), z.unknown()).describe('Your own data, as you sent it.')

named({ CreatedAt, NewMetadata: Metadata, Metadata: StoredMetadata })

/** Metadata that a list can be filtered by. */
export const FilteredMetadata = Metadata.describe(
  `Your own data, at most 16 KiB of JSON and ${metadataMembersMax} members. Responses contain it, and lists find it.`,
)

/** Characters that jsonb adds by expanding numbers: `1e308` takes three hundred digits in the database and in every response. */
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
  limit: z.coerce.number().int().min(1).max(500).default(50).describe('Most items of a page.'),
  cursor: z
    .string()
    .max(512)
    .optional()
    .describe('Where the page starts: the cursor in the `Link` header of the page before.'),
})

/** `?from=` and `?to=` of a list: when its rows were made. */
export const periodFilters = {
  from: InstantInput.optional().describe('From this time on (ISO 8601).'),
  to: InstantInput.optional().describe('Before this time (ISO 8601).'),
}

/** A member of metadata, and its value as text. */
export interface MetadataMember {
  readonly key: string
  readonly value: string
}

/** `?metadata.<key>=<value>` of a list whose rows have `FilteredMetadata`. */
export const metadataFilter = {
  metadata: z
    .record(text(128, 1), text(255))
    .transform((given, ctx): MetadataMember => {
      const [first, ...others] = Object.entries(given)
      if (first !== undefined && others.length === 0) return { key: first[0], value: first[1] }
      ctx.addIssue({ code: 'custom', message: 'must be one key and its value' })
      return z.NEVER
    })
    .optional()
    .meta({
      description:
        'One member of the metadata and its value: a text, a number or a boolean. In a URL it is `metadata.<key>=<value>`.',
      maxProperties: 1,
    }),
}

/** A query with the members of metadata that it names in an object of their own, for a schema with `metadataFilter`. */
export function groupMetadata(query: unknown, schema: z.ZodType): unknown {
  if (!(schema instanceof z.ZodObject) || schema.shape.metadata === undefined) return query
  const named = Object.entries(Object(query)).map(([name, value]) => [metadataKeyIn(name), name, value] as const)
  const members = named.flatMap(([key, , value]): [string, unknown][] => (key === undefined ? [] : [[key, value]]))
  const others = named.flatMap(([key, name, value]): [string, unknown][] => (key === undefined ? [[name, value]] : []))
  return Object.fromEntries(members.length === 0 ? others : [...others, ['metadata', Object.fromEntries(members)]])
}

function metadataKeyIn(name: string): string | undefined {
  const [, dotted, bracketed] = /^metadata(?:\.(.*)|\[(.*)\])$/s.exec(name) ?? []
  return dotted ?? bracketed
}

/** The sort key in a cursor that this service issued; anything else is a fault of the request. */
export function openCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined
  const key = Buffer.from(cursor, 'base64url').toString('utf8')
  const valid = /^[a-z]{2,8}_[0-9a-z]{26}$/.test(key) || /^[0-9]{1,19}$/.test(key)
  if (!valid || Buffer.from(key).toString('base64url') !== cursor) throw foreignCursor()
  return key
}

const bigintMax = 2n ** 63n - 1n

/** As `openCursor`, for a list that is ordered by a number of at most `most`; a cursor of another list is a fault of the request. */
export function openNumberCursor(cursor: string | undefined, most = bigintMax): string | undefined {
  const key = openCursor(cursor)
  if (key === undefined || (/^\d{1,19}$/.test(key) && BigInt(key) <= most)) return key
  throw foreignCursor()
}

function foreignCursor(): Error {
  const message = 'is not a cursor of this list; send that of the Link header of its previous page'
  return failPlatform('validation-error', { errors: [{ path: '/cursor', message }] })
}

/**
 * Returns an amount of a request in the smallest unit of its token. Text that is no decimal amount, or that has more digits than the token, is a fault
 * of the request at `path`; so is zero, unless `least` is zero.
 */
export function openAmount(
  text: string,
  { path, decimals, least = 1n }: { readonly path: string; readonly decimals: number; readonly least?: 0n | 1n },
): bigint {
  const raw = parseAmount(text, decimals)
  if (typeof raw === 'bigint' && raw >= least) return raw
  const message = `must be a decimal amount${least === 0n ? '' : ' above 0'} with at most ${decimals} decimals`
  throw failPlatform('validation-error', { errors: [{ path, message }] })
}

/** A page from rows, one more than `limit` of which were queried; `key` names the row after which the next page starts. */
export function pageOf<T>(listed: readonly T[] | ListedRows<T>, limit: number, key: (row: T) => string): Page<T> {
  const { rows, isCut, bytes } = 'rows' in listed ? listed : { rows: listed, isCut: false, bytes: 0 }
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const more = (isCut || rows.length > limit) && last !== undefined
  const cursorOf = (row: T): string => Buffer.from(key(row)).toString('base64url')
  return {
    items,
    next: more ? cursorOf(last) : undefined,
    ...(isCut && { bytesRead: bytes }),
    cursorAfter(count) {
      const row = items[count - 1]
      if (row === undefined) throw new Error('a page has no such item')
      return cursorOf(row)
    },
  }
}
