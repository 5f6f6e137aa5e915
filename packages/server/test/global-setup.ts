import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '@purser/devnet'
import type { TestProject } from 'vitest/node'
import { makeTemplate } from './template.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    readonly postgresUrl: string
    /** Where the workers of this run leave marks for each other. It is removed at the end. */
    readonly runDirectory: string
  }
}

/**
 * No data outlives the run, and no test kills this server: tests that do start a separate one, with every safety on. So
 * it never waits for the disk. These settings do not change what one session sees of another.
 */
const settings = {
  fsync: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '1GB',
  checkpoint_timeout: '1h',
  // No database lives long enough to need it. Tests of plans analyze their tables themselves.
  autovacuum: 'off',
  // All data is in memory, so handing a read to another process takes longer than the read.
  io_method: 'sync',
}

/** Linux keeps these files in memory. */
const memory = '/dev/shm'
/** More than the databases of a run need. */
const memoryBytesMin = 3_000_000_000

/**
 * A database is more than a thousand files. PostgreSQL has the disk write each new one at once, even if it does not wait for
 * it, which takes four to ten times the processor time.
 */
function fastestPlace(): string {
  if (!existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize < memoryBytesMin ? tmpdir() : memory
}

/** One PostgreSQL for the whole run, with a migrated database that each test file copies. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = mkdtempSync(join(fastestPlace(), 'purser-test-'))
  const postgres = await startPostgres({ dataDir, maxConnections: 500, settings })
  await makeTemplate(postgres.url)
  project.provide('postgresUrl', postgres.url)
  project.provide('runDirectory', dataDir)
  return async () => {
    await postgres.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
