import { z } from 'zod'
import { migrate } from '../platform/db/migrate.ts'
import { command, linesOr } from './command.ts'

/** Brings the database to the schema of this build, before its first start and before each upgrade. */
export const migrateDatabase = command({
  name: 'migrate',
  summary: 'Create or upgrade the tables of the database. The previous version of the service may keep running.',
  options: { patience: 'seconds to try again while another transaction has a lock that is needed (default 600)' },
  schema: z.strictObject({ patience: z.coerce.number().int().min(0).max(86_400).default(600) }),
  takesAnyDatabase: true,
  async run({ databaseUrl, databasePooler }, { patience }) {
    const names = await migrate({ url: databaseUrl, pooler: databasePooler, patienceMs: patience * 1_000 })
    const migrated = names.map((name) => `migrated ${name}`)
    return { lines: linesOr(migrated, 'The database is up to date.'), json: { migrated: names }, exitCode: 0 }
  },
})
