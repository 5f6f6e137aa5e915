import { z } from 'zod'
import type { Sql } from '../src/platform/db/db.ts'
import type { TestDatabase } from './database.ts'

type Read = TestDatabase['db']['many']

/** The read, which also lists its statements. */
export function spy<R extends Read | TestDatabase['db']['one']>(statements: Sql[], read: R): R {
  const spied = (row: z.ZodType, statement: Sql) => {
    statements.push(statement)
    return read(row, statement)
  }
  return spied as R
}

/** How many blocks a statement reads, and by which plan. */
export async function readBy(db: TestDatabase['db'], statement: Sql): Promise<{ blocks: number; plan: string }> {
  const explained = { text: `explain (analyze, buffers) ${statement.text}`, values: statement.values }
  const rows = await db.many(z.record(z.string(), z.string()), explained)
  const plan = rows.map((row) => Object.values(row).join('')).join('\n')
  const blocks = /Buffers: shared hit=(\d+)(?: read=(\d+))?/.exec(plan)
  return { blocks: Number(blocks?.[1] ?? 0) + Number(blocks?.[2] ?? 0), plan }
}
