import { z } from 'zod'
import { type Db, type Sql, sql } from '../src/platform/db/db.ts'

const Column = z.object({ name: z.string(), type: z.string(), isNeeded: z.boolean() })

/** SQL expressions of a table's columns, of the row's number `n`. */
export type Expressions = Readonly<Record<string, string>>

export const statement = (text: string): Sql => ({ text, values: [] })

/**
 * Inserts rows numbered from `first` to `last` in one statement and analyzes the table, without its constraints. Columns
 * that are neither given nor have a default get any value of their type.
 */
export async function fillTable(
  db: Db,
  table: string,
  own: Expressions,
  { first = 1, last }: { readonly first?: number; readonly last: number },
): Promise<void> {
  const columns = await db.many(
    Column,
    sql`select column_name as name, data_type as type, is_nullable = 'NO' and column_default is null and is_identity = 'NO' and is_generated = 'NEVER' as is_needed
      from information_schema.columns where table_schema = current_schema() and table_name = ${table}`,
  )
  const checks = await db.many(
    z.object({ name: z.string() }),
    sql`select conname as name from pg_constraint where contype = 'c' and conrelid = ${table}::regclass`,
  )
  for (const { name } of checks) await db.run(statement(`alter table ${table} drop constraint ${name}`))
  const filled = columns.filter(({ name, isNeeded }) => isNeeded || own[name] !== undefined)
  const values = filled.map(({ name, type }) => own[name] ?? (name === 'environment' ? `'test'` : sampleOf(type)))
  await db.tx(async (tx) => {
    await tx.run(statement(`set local session_replication_role = replica`))
    await tx.run(
      statement(
        `insert into ${table} (${filled.map(({ name }) => name).join(', ')}) select ${values.join(', ')} from generate_series(${first}, ${last}) as n`,
      ),
    )
  })
  await db.run(statement(`vacuum (analyze) ${table}`))
}

function sampleOf(type: string): string {
  if (type === 'text') return `'x' || n`
  if (type.startsWith('timestamp')) return `now() - interval '3 days'`
  if (type === 'date') return 'current_date'
  if (type === 'boolean') return 'false'
  if (type === 'jsonb' || type === 'json') return `'{}'`
  if (type === 'bytea') return `decode(lpad(to_hex(n), 64, '0'), 'hex')`
  if (type === 'ARRAY') return `'{}'`
  return type === 'smallint' ? '1' : 'n'
}
