import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Postgres, startPostgres } from '@purser/devnet'
import { migrate } from '../../src/platform/db/migrate.ts'

/** A PostgreSQL that a test stops, crashes and starts again at one address. */
export interface RestartablePostgres {
  readonly url: string
  /** Shuts down in order, or kills it as in a crash. */
  end(how: 'stop' | 'kill'): Promise<void>
  start(): Promise<void>
  /** Copies the data directory while PostgreSQL is stopped. Returns a function that restores the copy. */
  copy(): () => void
  /** Ends it and removes its data. */
  remove(): Promise<void>
}

export async function aRestartablePostgres(): Promise<RestartablePostgres> {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-restart-'))
  const socket = path.join(place, 'socket')
  const copies: string[] = []
  let postgres: Postgres
  /** Starts it on its data directory. Clients reach each start's socket under one name. */
  const start = async (): Promise<void> => {
    postgres = await startPostgres({ dataDir: path.join(place, 'data') })
    const socketDir = new URL(postgres.url.replace('@/', '@localhost/')).searchParams.get('host') ?? ''
    symlinkSync(socketDir, `${socket}.new`)
    renameSync(`${socket}.new`, socket)
  }
  await start()
  const url = `postgres://purser@/purser?host=${encodeURIComponent(socket)}&port=5432`
  await migrate({ url })
  return {
    url,
    end: (how) => postgres[how](),
    start,
    copy() {
      const { cluster } = postgres
      const copy = `${cluster}-copy-${copies.length}`
      copies.push(copy)
      duplicate(cluster, copy)
      return () => {
        rmSync(cluster, { recursive: true })
        duplicate(copy, cluster)
      }
    },
    async remove() {
      await postgres.stop()
      for (const copy of copies) rmSync(copy, { recursive: true, force: true })
      rmSync(place, { recursive: true, force: true })
    },
  }
}

/** Copies owners and modes too; PostgreSQL does not start without them. */
function duplicate(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}
