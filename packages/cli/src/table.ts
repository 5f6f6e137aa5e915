const columnsMax = 7
const widthMax = 44

/** Columns that come first, in this order, if the items have them. */
const first = ['id', 'status', 'state', 'amount', 'token', 'chain', 'name']
/** The column that is shown last. */
const last = 'createdAt'

/** Returns a list as a table with a header. Shows members that are texts, numbers or booleans; `--format json` has all. */
export function tableLines(items: readonly unknown[]): readonly string[] {
  const rows = items.filter((item) => typeof item === 'object' && item !== null).map((item) => Object.entries(item))
  if (rows.length === 0) return items.length === 0 ? ['There are none.'] : items.map(String)
  const cells = rows.map(
    (row) => new Map(row.filter(([, value]) => isPlain(value)).map(([name, value]) => [name, cellOf(value)])),
  )
  const columns = columnsOf(cells)
  const widths = columns.map((name) => Math.max(name.length, ...cells.map((row) => row.get(name)?.length ?? 0)))
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(columns), ...cells.map((row) => line(columns.map((name) => row.get(name) ?? '')))]
}

/** Returns a value as lines: the members of an object below each other, anything nested as JSON. */
export function recordLines(value: unknown): readonly string[] {
  if (Array.isArray(value)) return tableLines(value)
  if (typeof value !== 'object' || value === null) return [String(value)]
  const members = Object.entries(value)
  const width = Math.max(0, ...members.map(([name]) => name.length))
  return members.flatMap(([name, member]) => {
    const [head = '', ...rest] =
      isPlain(member) || member === null ? [String(member)] : JSON.stringify(member, null, 2).split('\n')
    return [`${name.padEnd(width)}  ${head}`, ...rest.map((text) => `${' '.repeat(width)}  ${text}`)]
  })
}

function columnsOf(rows: readonly ReadonlyMap<string, string>[]): readonly string[] {
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))]
  const chosen = [
    ...first.filter((name) => names.includes(name)),
    ...names.filter((name) => !first.includes(name) && name !== last),
  ]
  return names.includes(last) ? [...chosen.slice(0, columnsMax - 1), last] : chosen.slice(0, columnsMax)
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function cellOf(value: string | number | boolean): string {
  const text = String(value)
  return text.length > widthMax ? `${text.slice(0, widthMax - 1)}…` : text
}
