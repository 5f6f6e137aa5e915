import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Postgres, startPostgres } from '@purser/devnet'

/** A PostgreSQL that a test stops, crashes and starts again under one address. */
export interface RestartablePostgres {
  readonly url: string
  /** Shuts down in order, or as in a crash. */
  end(how: 'stop' | 'kill'): Promise<void>
  start(): Promise<void>
  /** Copies the data directory while PostgreSQL is stopped; the answer puts the copy in its place, as a restore does. */
  copy(): () => void
  /** Ends it and removes its data. */
  remove(): Promise<void>
}

export async function aRestartablePostgres(): Promise<RestartablePostgres> {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-restart-'))
  const socket = path.join(place, 'socket')
  const copies: string[] = []
  let postgres: Postgres
  /** On its data directory; clients reach each start's socket under one name. */
  const start = async (): Promise<void> => {
    postgres = await startPostgres({ dataDir: path.join(place, 'data') })
    const socketDir = new URL(postgres.url.replace('@/', '@localhost/')).searchParams.get('host') ?? ''
    symlinkSync(socketDir, `${socket}.new`)
    renameSync(`${socket}.new`, socket)
  }
  await start()
  return {
    url: `postgres://purser@/purser?host=${encodeURIComponent(socket)}&port=5432`,
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

/** With owners and modes, without which PostgreSQL does not start. */
function duplicate(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
}
