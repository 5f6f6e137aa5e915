import type { z } from 'zod'

/** A statement with its values kept separate: values never become SQL text. */
export interface Sql {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Tagged template for SQL. Every `${value}` becomes a parameter; nested `sql` fragments are spliced in. */
export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  let text = strings[0] ?? ''
  const parameters: unknown[] = []
  values.forEach((value, index) => {
    if (isSql(value)) {
      const offset = parameters.length
      text += value.text.replace(/\$(\d+)/g, (_, position: string) => `$${Number(position) + offset}`)
      parameters.push(...value.values)
    } else {
      parameters.push(value)
      text += `$${parameters.length}`
    }
    text += strings[index + 1] ?? ''
  })
  return new Statement(text, parameters)
}

class Statement implements Sql {
  readonly text: string
  readonly values: readonly unknown[]
  constructor(text: string, values: readonly unknown[]) {
    this.text = text
    this.values = values
  }
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
