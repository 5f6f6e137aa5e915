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
  /** Ends it and removes its data. */
  remove(): Promise<void>
}

export async function aRestartablePostgres(): Promise<RestartablePostgres> {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-restart-'))
  const socket = path.join(place, 'socket')
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
    async remove() {
      await postgres.stop()
      rmSync(place, { recursive: true, force: true })
    },
  }
}
