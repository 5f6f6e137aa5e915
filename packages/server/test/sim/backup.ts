import { type Db, sql } from '../../src/platform/db/db.ts'

/** An older state of tables, and of the mark that the database had then. Both are one moment's. */
export interface Backup {
  take(): Promise<void>
  /** Puts the older state back, as a restored database has it. */
  restore(): Promise<void>
}

/** Keeps the copies in a schema of their own; `tables` are in an order in which no row is deleted before those that name it. */
export async function aBackup(db: Db, tables: readonly string[]): Promise<Backup> {
  const kept = [...tables, 'witness_state']
  const run = (text: string) => db.run({ text, values: [] })
  await run('create schema older')
  for (const table of kept) await run(`create table older.${table} (like public.${table})`)
  return {
    async take() {
      await db.tx(async (tx) => {
        for (const table of kept) {
          await tx.run({ text: `delete from older.${table}`, values: [] })
          await tx.run({ text: `insert into older.${table} select * from public.${table}`, values: [] })
        }
      })
    },
    async restore() {
      await db.tx(async (tx) => {
        await tx.run(sql`set constraints all deferred`)
        for (const table of kept) await tx.run({ text: `delete from public.${table}`, values: [] })
        for (const table of kept.toReversed())
          await tx.run({
            text: `insert into public.${table} overriding system value select * from older.${table}`,
            values: [],
          })
      })
    },
  }
}
