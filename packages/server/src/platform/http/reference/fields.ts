import type { Schema } from './document.ts'
import { code, prose, table } from './html.ts'

/** A table of all fields of a schema, including nested ones; a sentence if it has no fields. */
export function fieldsTable(label: string, schema: Schema): string {
  const rows = rowsOf('', schema)
  if (rows.length === 0) return `<p>${typeOf(schema)}. ${notesOf(schema)}</p>`
  const head = ['Field', 'Type', 'Required', 'Notes']
  const kind = schema.type === 'array' ? '<p>A list of:</p>' : schema.anyOf === undefined ? '' : '<p>One of these:</p>'
  return kind + table(label, head, rows)
}

/** The type of a value, in words. */
export function typeOf(schema: Schema): string {
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.const !== undefined) return code(JSON.stringify(schema.const))
  if (schema.type === 'array') return schema.items === undefined ? 'list' : `list of ${typeOf(schema.items)}`
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any JSON'])
  return types.join(' or ') + (schema.format === undefined ? '' : ` (${schema.format})`)
}

/** Notes of a schema: its description, its limits and its default. */
export function notesOf(schema: Schema): string {
  const { description, enum: values, default: usual, example } = schema
  return [
    ...(description === undefined ? [] : [prose(description)]),
    ...(values === undefined ? [] : [`One of ${values.map((value) => code(String(value))).join(', ')}.`]),
    ...limitsOf(schema).map((limit) => `${limit}.`),
    ...(usual === undefined ? [] : [`Default ${code(JSON.stringify(usual))}.`]),
    ...(example === undefined
      ? []
      : [`Such as ${code(typeof example === 'string' ? example : JSON.stringify(example))}.`]),
  ].join(' ')
}

/** A pattern is shown only if nothing more readable describes it. */
function limitsOf(schema: Schema): string[] {
  const { pattern, format, example, items } = schema
  return [
    between(schema.minLength, schema.maxLength, 'characters'),
    between(schema.minItems, schema.maxItems, 'items'),
    between(schema.minimum, schema.maximum, ''),
    pattern !== undefined && format === undefined && example === undefined ? `Matches ${code(pattern)}` : '',
    ...(items === undefined ? [] : limitsOf(items).map((limit) => `Each: ${limit}`)),
    items?.enum === undefined ? '' : `Each one of ${items.enum.map((value) => code(String(value))).join(', ')}`,
  ].filter((limit) => limit !== '')
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  const [from, to] = [least === 0 && unit !== '' ? undefined : least, most]
  if (from !== undefined && to !== undefined)
    return from === to ? `${to} ${unit}`.trim() : `${from} to ${to} ${unit}`.trim()
  if (to !== undefined) return `At most ${to} ${unit}`.trim()
  return from === undefined ? '' : `At least ${from} ${unit}`.trim()
}

/** Rows for the fields of an object, of a list's items, and of each variant of a value. */
function rowsOf(path: string, schema: Schema): string[][] {
  if (schema.anyOf !== undefined) return merged(schema.anyOf.flatMap((one) => rowsOf(path, one)))
  if (schema.items !== undefined) return rowsOf(path === '' ? '' : `${path}[]`, schema.items)
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const inner = path === '' ? name : `${path}.${name}`
    const isRequired = schema.required.includes(name) ? 'yes' : 'no'
    return [[code(inner), typeOf(field), isRequired, notesOf(field)], ...rowsOf(inner, field)]
  })
}

/** Merges equal fields of variants; a field with different notes has one row for each. */
function merged(rows: readonly string[][]): string[][] {
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()]
}
