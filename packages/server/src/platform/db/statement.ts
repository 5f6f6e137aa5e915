import type { z } from 'zod'

/** A statement with its values kept separate: values never become SQL text. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Tagged template for SQL. Every `${value}` becomes a parameter; nested `sql` fragments are spliced in. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  const parameters = values.flatMap((value) => (isSql(value) ? value.values : [value]))
  return new Statement(textOf(strings, values), parameters)
}

/** A cached text of a template for one combination of fragments. */
interface Variant {
  readonly fragments: readonly (string | undefined)[]
  readonly text: string
}

/** Texts per template that are kept. A template with more has fragments that callers compose, such as the filters of a list. */
const variantsMax = 16
const variantsOf = new WeakMap<TemplateStringsArray, readonly Variant[]>()

/**
 * Returns the text of a template with its fragments. Each combination is composed once: composing costs more than encoding the values, and a
 * text that is the same string in memory is found faster among the names of statements.
 */
function textOf(strings: TemplateStringsArray, values: readonly unknown[]): string {
  const known = variantsOf.get(strings) ?? []
  const found = known.find(({ fragments }) => fragments.every((text, place) => text === fragmentOf(values[place])))
  if (found !== undefined) return found.text
  const text = compose(strings, values)
  if (known.length < variantsMax) variantsOf.set(strings, [...known, { fragments: values.map(fragmentOf), text }])
  return text
}

function fragmentOf(value: unknown): string | undefined {
  return isSql(value) ? value.text : undefined
}

function compose(strings: TemplateStringsArray, values: readonly unknown[]): string {
  let text = strings[0] ?? ''
  let count = 0
  values.forEach((value, index) => {
    if (isSql(value)) {
      text += renumbered(value.text, count)
      count += value.values.length
    } else {
      count += 1
      text += `$${count}`
    }
    text += strings[index + 1] ?? ''
  })
  return text
}

function renumbered(text: string, offset: number): string {
  return offset === 0 ? text : text.replace(/\$(\d+)/g, (_, position: string) => `$${Number(position) + offset}`)
}

/** The fragments with commas between them. */
export function listed(fragments: readonly Sql[]): Sql {
  let count = 0
  const texts = fragments.map(({ text, values }) => {
    const own = renumbered(text, count)
    count += values.length
    return own
  })
  return new Statement(
    texts.join(', '),
    fragments.flatMap(({ values }) => values),
  )
}

/**
 * An array whose length the planner ignores, so that a statement keeps one plan for all lengths. PostgreSQL would otherwise plan it anew for each
 * short array, because it assumes ten elements where it does not know them.
 */
export function anyLength(values: readonly unknown[], type: Sql = sql`text`): Sql {
  // With the second cast, `any` takes it as an array and not as a query.
  return sql`(select ${values}::${type}[])::${type}[]`
}

class Statement implements Sql {
  readonly text: string
  readonly values: readonly unknown[]
  constructor(text: string, values: readonly unknown[]) {
    this.text = text
    this.values = values
  }
}

/** The names of columns, separated by commas. They are part of the program, and never come from a caller. */
function columnsNamed(names: readonly string[]): Sql {
  const unfit = names.find((name) => !/^[a-z][a-z0-9_]*$/.test(name))
  if (unfit !== undefined) throw new Error(`${unfit} is no name of a column`)
  return new Statement(names.join(', '), [])
}

/** The names, in the database, of the columns that a row's schema reads. */
export function columnNames({ shape }: Pick<z.ZodObject, 'shape'>): string[] {
  return Object.keys(shape).map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
}

const memberNames = new Map<string, string>()

/** The name, in a row, of the member that has a column's values. */
export function memberName(column: string): string {
  let name = memberNames.get(column)
  if (name === undefined) {
    name = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
    memberNames.set(column, name)
  }
  return name
}

/** The columns that a row's schema reads, under their names in the database. */
export function columnsOf(row: Pick<z.ZodObject, 'shape'>): Sql {
  return columnsNamed(columnNames(row))
}

function isSql(value: unknown): value is Sql {
  return value instanceof Statement
}

/** Runs statements: the pool (each statement by itself) or a transaction. Rows are parsed, with their names in camelCase. */
export interface Queryable {
  /** The one row; throws when there are none or several. */
  one<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S>>
  /** The row, or undefined; throws when there are several. */
  maybeOne<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S> | undefined>
  many<S extends z.ZodType>(row: S, statement: Sql): Promise<z.output<S>[]>
  /** Runs a statement for its effect; returns the number of affected rows. */
  run(statement: Sql): Promise<number>
}
