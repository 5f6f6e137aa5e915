import { expect } from 'vitest'
import { z } from 'zod'
import { utcMonthOf } from '../src/platform/clock.ts'
import type { Db, Queryable, Sql, Tx } from '../src/platform/db/db.ts'
import { sql } from '../src/platform/db/db.ts'

interface Sent {
  readonly plan: string
  readonly text: string
}

const Lines = z.record(z.string(), z.string())

/** A database that notes the plan of each statement on a table before it runs it. */
export function explaining(db: Db, mode: string, table: RegExp): { readonly db: Db; readonly sent: Sent[] } {
  const sent: Sent[] = []
  const over = <Q extends Queryable>(on: Q): Q => {
    const note = async ({ text, values }: Sql): Promise<void> => {
      if (!/^\s*(with|select|insert|update|delete)/.test(text) || !table.test(text)) return
      const rows = await on.many(Lines, { values, text: `explain ${text}` })
      sent.push({ text, plan: rows.map((row) => Object.values(row)[0]).join('\n') })
    }
    return {
      ...on,
      one: async (row, statement) => note(statement).then(() => on.one(row, statement)),
      maybeOne: async (row, statement) => note(statement).then(() => on.maybeOne(row, statement)),
      many: async (row, statement) => note(statement).then(() => on.many(row, statement)),
      run: async (statement) => note(statement).then(() => on.run(statement)),
    }
  }
  const explained: Db = {
    ...over(db),
    tx: (work, options) =>
      db.tx(async (tx) => {
        await tx.run(sql`select set_config('plan_cache_mode', ${mode}, true)`)
        return work(over(tx))
      }, options),
  }
  return { db: explained, sent }
}

/** Runs the work with its statements on a table explained, for both kinds of plan, and undoes it. */
export async function monthPlans(db: Db, table: RegExp, work: (tx: Tx) => Promise<unknown>): Promise<Sent[]> {
  const undo = new Error('undone')
  const all: Sent[] = []
  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    const explained = explaining(db, mode, table)
    const undone = explained.db.tx(async (tx) => {
      await work(tx)
      throw undo
    })
    await expect(undone).rejects.toBe(undo)
    all.push(...explained.sent)
  }
  expect(all.length).toBeGreaterThan(0)
  return all
}

/** The partitions of a table in a plan. */
export function partitionsOf(table: string, plan: string): string[] {
  return [...new Set(plan.match(new RegExp(`(?<= on )${table}_(first|from)\\w*`, 'g')) ?? [])]
}

/** The months that a plan reads whole. Of past months: what PostgreSQL plans for a table without rows changes as soon as it has some. */
export function scansOf(table: string, months: readonly Date[], plan: string): string[] {
  return months
    .map((month) => `${table}_from_${utcMonthOf(month).replace('-', '_')}`)
    .filter((name) => plan.includes(`Seq Scan on ${name}`))
}
