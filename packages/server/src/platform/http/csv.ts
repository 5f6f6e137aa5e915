import { z } from 'zod'
import { type WeightedValue, weightedValues } from './accept.ts'

type Json = Readonly<Record<string, unknown>>

/** The header fields of a list as CSV (RFC 4180, RFC 7111), which a browser saves under this name. */
export function csvHeaders(name: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename="${name}.csv"`,
  }
}

/**
 * Whether the client prefers CSV to JSON (RFC 9110, section 12.5.1). A client that accepts neither or everything gets JSON. Of two equal weights the
 * more exact name wins, then the first one. Parameters of a media type make no difference.
 */
export function prefersCsv(accept: string | undefined): boolean {
  const ranges = weightedValues(accept)
  const csv = rankOf(ranges, ['text/csv', 'text/*', '*/*'])
  const json = rankOf(ranges, ['application/json', 'application/*', '*/*'])
  const differing = csv.findIndex((part, at) => part !== json[at])
  return csv[0] > 0 && (csv[differing] ?? 0) > (json[differing] ?? 0)
}

/** The weight of the most exact range that includes the media type, how exact it is, and how early it is; greater is better. */
function rankOf(
  ranges: readonly WeightedValue[],
  names: readonly [string, string, string],
): readonly [number, ...number[]] {
  for (const [exactness, name] of names.entries()) {
    const at = ranges.findIndex(({ value }) => value === name)
    const range = ranges[at]
    if (range !== undefined) return [range.weight, -exactness, -at]
  }
  return [0]
}

/** One row for each item, after a row with the names of the columns: the members of the schema. Rows end with CRLF. */
export function csvOf(schema: z.ZodType, items: readonly unknown[]): string {
  if (!(schema instanceof z.ZodObject)) throw new Error('only a list of objects has columns')
  const columns = Object.keys(schema.shape)
  const rows = items.map((item) => columns.map((column) => cellOf((item as Json)[column])))
  return [columns, ...rows].map((row) => `${row.map(quoted).join(',')}\r\n`).join('')
}

/** Null is an empty cell; an object or array is JSON text, which no spreadsheet takes for a formula at its beginning. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'string') return withoutFormula(value)
  if (typeof value !== 'object') return String(value)
  return JSON.stringify(value).replaceAll(
    beginsAfterSemicolon,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** In most of Europe, Excel separates cells at semicolons and ignores these quotes, so that a formula could begin after a semicolon. */
const beginsAfterSemicolon = /(?<=;)[=+\-@＝＋－＠]/g

/** The sign is matched first: a look back at each place of a run of quotes would take time in proportion to its square. */
const startsCell = /(?=[=+\-@＝＋－＠])(?<=[;\t\r\n]"*)/g

/**
 * Some texts are written by third parties, and a spreadsheet evaluates a cell that begins like a formula (CWE-1236). Such a cell gets a leading
 * apostrophe, unless it is a number. So does each part of a cell that another separator than a comma would make a cell, also after quotes. Some
 * spreadsheets read the full-width forms as well.
 */
function withoutFormula(text: string): string {
  if (/^[+-]?\d+(\.\d+)?$/.test(text)) return text
  const parts = text.replaceAll(startsCell, "'")
  return /^[=+\-@\t\r\n＝＋－＠]/.test(parts) ? `'${parts}` : parts
}

function quoted(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}
