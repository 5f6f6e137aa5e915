import { z } from 'zod'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { type Db, sql } from './db.ts'

/**
 * The operator's means to keep what the database committed when its server is lost: a synchronous standby, a managed service that promises it, or
 * none (one server and its backups).
 */
export const durabilities = ['synchronous', 'managed', 'single'] as const
export type Durability = (typeof durabilities)[number]

/**
 * `confirmed`: each commit waits for a standby that is connected. `standby-missing`: no standby is connected, or the server names none that
 * commits wait for. `commit-not-waiting`: `synchronous_commit` does not wait for a standby. `hidden`: the role may not see the standbys
 * (grant it `pg_monitor`).
 */
type StandbyState = 'confirmed' | 'standby-missing' | 'commit-not-waiting' | 'hidden'

const Row = z.object({ names: z.string(), commit: z.string(), synchronous: z.bigint(), hidden: z.bigint() })

/** Whether a commit of this database is on a second server when it is acknowledged, as far as its server shows it. */
async function readStandbyState(db: Db): Promise<StandbyState> {
  const { names, commit, synchronous, hidden } = await db.one(
    Row,
    sql`
    select current_setting('synchronous_standby_names') as names, current_setting('synchronous_commit') as commit,
      (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')) as synchronous,
      (select count(*) from pg_stat_replication where sync_state is null) as hidden`,
  )
  if (names === '') return 'standby-missing'
  if (commit === 'off' || commit === 'local') return 'commit-not-waiting'
  if (synchronous > 0n) return 'confirmed'
  return hidden > 0n ? 'hidden' : 'standby-missing'
}

/** Whether the server of the database takes writes. A standby does not, nor one whose sessions are set to read only. */
export async function takesWrites(db: Db): Promise<boolean> {
  const { isReadOnly } = await db.one(
    z.object({ isReadOnly: z.boolean() }),
    sql`select current_setting('transaction_read_only') = 'on' as is_read_only`,
  )
  return !isReadOnly
}

/** The line of readiness about durability. */
export interface DurabilityReport {
  readonly configured: Durability | 'not-stated'
  readonly standby?: StandbyState
}

const checkAgainMs = 5_000

/**
 * Returns a function that reports durability, at most five seconds old. With `synchronous`, each change of the standby is logged: a missing one as an
 * error. Nothing is refused: payments go on with one server.
 */
export function watchDurability(
  { db, clock, log }: { readonly db: Db; readonly clock: Clock; readonly log: Log },
  configured: Durability | undefined,
): () => Promise<DurabilityReport> {
  if (configured !== 'synchronous') return async () => ({ configured: configured ?? 'not-stated' })
  let last: { readonly standby: StandbyState; readonly atMs: number } | undefined
  return async () => {
    const nowMs = clock.now().getTime()
    if (last !== undefined && nowMs - last.atMs < checkAgainMs) return { configured, standby: last.standby }
    const standby = await readStandbyState(db)
    if (standby !== last?.standby) {
      if (standby === 'confirmed') log.info('a standby confirms each commit')
      else log.error({ standby }, 'DATABASE_DURABILITY is synchronous, but no standby is known to confirm commits')
    }
    last = { standby, atMs: nowMs }
    return { configured, standby }
  }
}
