import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Postgres, startPostgres } from '@purser/devnet'
import { expect } from 'vitest'
import { z } from 'zod'
import { type Db, openDb, sql } from '../../src/platform/db/db.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { createLog } from '../../src/platform/log.ts'
import { type DatabaseProxy, startDatabaseProxy } from '../database-proxy.ts'

/** A primary and a standby that streams from it, each behind a network that a test freezes. */
export interface ReplicatedPostgres {
  /** Names both servers, the primary first. */
  readonly url: string
  /** The standby, which is not behind the network. */
  readonly standby: Db
  /** The primary dies, or nothing passes to it and from it any more. */
  losePrimary(how: 'killed' | 'frozen'): Promise<void>
  /** From now on the standby, which has everything until now, gets nothing more. Only where commits do not wait for it. */
  lag(): Promise<void>
  promote(): Promise<void>
  remove(): Promise<void>
}

/** Copies the primary while it runs, as `pg_basebackup` does. Each commit waits for a synchronous standby, and for no asynchronous one. */
export async function aReplicatedPostgres(
  commits: 'synchronous' | 'asynchronous' = 'synchronous',
): Promise<ReplicatedPostgres> {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-replicated-'))
  const settings = { fsync: 'off', wal_sender_timeout: '5s' }
  const primary = await startPostgres({ dataDir: path.join(place, 'primary'), settings })
  await migrate({ url: primary.url })
  const onPrimary = openDb({ url: primary.url, connectionsMax: 1, log: createLog({ level: 'silent' }) })
  const standbyServer = await startStandby(primary, onPrimary, path.join(place, 'standby'))
  const standby = openDb({ url: standbyServer.url, connectionsMax: 4, log: createLog({ level: 'silent' }) })
  if (commits === 'synchronous') await onPrimary.run(sql`alter system set synchronous_standby_names = '*'`)
  await onPrimary.many(z.object({}), sql`select pg_reload_conf()`)
  const State = z.object({ syncState: z.string() })
  await expect
    .poll(() => onPrimary.many(State, sql`select sync_state from pg_stat_replication`), { interval: 50 })
    .toEqual([{ syncState: commits === 'synchronous' ? 'sync' : 'async' }])
  const networks: readonly [DatabaseProxy, DatabaseProxy] = [
    await startDatabaseProxy(primary.url),
    await startDatabaseProxy(standbyServer.url),
  ]
  const [first, second] = networks
  return {
    url: first.url.replace(/@[^/]+/, (host) => `${host},${new URL(second.url).host}`),
    standby,
    async losePrimary(how) {
      await onPrimary.close()
      if (how === 'killed') await primary.kill()
      else first.freeze()
    },
    async lag() {
      const { place } = await onPrimary.one(
        z.object({ place: z.string() }),
        sql`select pg_current_wal_flush_lsn()::text as place`,
      )
      const State = z.object({ has: z.boolean() })
      const has = sql`select pg_last_wal_replay_lsn() >= ${place}::pg_lsn as has`
      await expect.poll(() => standby.one(State, has), { interval: 20 }).toEqual({ has: true })
      await standby.run(sql`alter system set primary_conninfo = ''`)
      await standby.many(z.object({}), sql`select pg_reload_conf()`)
      const Receiver = z.object({ pid: z.number() })
      await expect
        .poll(() => standby.many(Receiver, sql`select pid from pg_stat_wal_receiver`), { interval: 20 })
        .toEqual([])
    },
    async promote() {
      await standby.many(z.object({}), sql`select pg_promote(true, 30)`)
    },
    async remove() {
      await onPrimary.close().catch(() => undefined)
      await standby.close()
      for (const network of networks) await network.stop()
      await standbyServer.kill()
      await primary.kill()
      rmSync(place, { recursive: true, force: true })
    },
  }
}

async function startStandby(primary: Postgres, onPrimary: Db, dataDir: string): Promise<Postgres> {
  mkdirSync(dataDir)
  chmodSync(path.dirname(dataDir), 0o755)
  chmodSync(dataDir, 0o755)
  const cluster = path.join(dataDir, 'cluster')
  await onPrimary.many(z.object({}), sql`select pg_backup_start('standby', true)`)
  execFileSync('cp', ['-a', primary.cluster, cluster])
  const { labelfile } = await onPrimary.one(
    z.object({ labelfile: z.string() }),
    sql`select labelfile from pg_backup_stop(false)`,
  )
  for (const file of ['postmaster.pid', 'postmaster.opts']) rmSync(path.join(cluster, file), { force: true })
  writeFileSync(path.join(cluster, 'backup_label'), labelfile)
  writeFileSync(path.join(cluster, 'standby.signal'), '')
  const socket = new URL(primary.url.replace('@/', '@localhost/')).searchParams.get('host')
  const configuration = path.join(cluster, 'postgresql.auto.conf')
  const conninfo = `primary_conninfo = 'host=${socket} port=5432 user=purser application_name=standby'\n`
  writeFileSync(configuration, `${readFileSync(configuration, 'utf8')}${conninfo}`)
  const owner = execFileSync('stat', ['-c', '%u:%g', cluster], { encoding: 'utf8' }).trim()
  execFileSync('chown', ['-R', owner, cluster])
  return startPostgres({ dataDir, settings: { fsync: 'off' } })
}
