import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { bytesToHex } from '@purser/protocol'
import { z } from 'zod'
import type { Signer } from '../../src/chain/port.ts'
import { createSignatures } from '../../src/chain/signatures/signatures.ts'
import { createSigner } from '../../src/custody/signer.ts'
import { foundOrganisation, upsertAccount } from '../../src/features/organisations/index.ts'
import { type Ctx, createModules, type Deps } from '../../src/modules.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { type Db, openDb, sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import type { Random } from '../../src/platform/random.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import type { TestDatabase } from '../database.ts'
import { oneNanoUsdPerGas, testConfig } from '../test-config.ts'
import { chanceOf } from './chance.ts'
import { openStates } from './states.ts'

/** A migrated database whose clock a test sets, the service's parts on it, and organisations. */
export type Theater = Awaited<ReturnType<typeof openTheater>>

/** Uses its own database, which is dropped afterwards. */
export async function openTheater(database: TestDatabase, organisations: number) {
  await setUpClock(database.db)
  // The simulated clock is on the search path of its connections.
  const db = openDb({
    url: database.url,
    connectionsMax: 24,
    statementTimeoutMs: 0,
    // A statement waits for a lock as long as the others need, whatever the machine's load.
    silentMsMax: Number.POSITIVE_INFINITY,
    log: createLog({ level: 'silent' }),
  })
  const filesDirectory = mkdtempSync(path.join(tmpdir(), 'purser-sim-'))
  const config = testConfig(database.url, { filesDirectory })
  const log = createLog({ level: 'silent' })
  // The same in every run, so that a seed is the same history again.
  const built = await createModules(config, { log, gasPrices: oneNanoUsdPerGas, random: chanceOf(2) })
  const chance = chanceOf(1)
  const privateKey = chance.bytes(32)
  const signer: Signer = await createSigner(async () => Uint8Array.from(privateKey), await createSignatures())
  const first: Deps = { ...built.deps, random: chance, clock: { now: () => new Date(Date.UTC(2026, 0, 1)) } }
  const tenants = await organisationsIn(first, organisations)
  return {
    db,
    deps: built.deps,
    signer,
    tenants,
    /**
     * The operator's context, to set up a history. A history passes its own random source, because earlier histories have drawn from the shared one.
     */
    actingFor: (tenant: Tenant, random: Random = chance): Ctx => ({
      ...forTenant(systemCtx({ ...first, random }), tenant),
      actor: { kind: 'operator' },
    }),
    setNow: (ms: number) => db.run(sql`select setval('simulated.clock', ${Math.round(ms)}::bigint)`),
    async countLocked() {
      const row = await built.deps.db.one(
        z.object({ count: z.bigint() }),
        sql`select count(distinct pid) as count from pg_locks
        where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`,
      )
      return Number(row.count)
    },
    /** Each stage keeps its `beginning`, with which each history begins. */
    states: await openStates(db),
    async stop() {
      await built.close()
      await db.close()
      await database.drop()
      rmSync(filesDirectory, { recursive: true, force: true })
    },
  }
}

/** Replaces the database clock by a sequence. Stores read the time by these function names only. */
async function setUpClock(db: Db): Promise<void> {
  const statements = [
    'create schema simulated',
    'create sequence simulated.clock',
    ...['now', 'clock_timestamp', 'statement_timestamp'].map(
      (name) =>
        `create function simulated.${name}() returns timestamptz language sql stable as 'select to_timestamp(last_value / 1000.0) from simulated.clock'`,
    ),
    // The schema of the service comes first, since it is the one whose sequences a restore moves.
    `do $$ begin execute format('alter database %I set search_path = public, simulated, pg_catalog', current_database()); end $$`,
    // When PostgreSQL vacuums and analyzes depends on the load, and then in which order a statement reads rows.
    `do $$ declare name regclass; begin
      for name in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
        execute format('alter table %s set (autovacuum_enabled = false)', name);
      end loop;
    end $$`,
  ]
  for (const text of statements) await db.run({ text, values: [] })
}

async function organisationsIn(deps: Deps, count: number): Promise<readonly Tenant[]> {
  const acting = { ...deps, actor: { kind: 'operator' } as const, requestId: newId('req', deps) }
  const tenants: Tenant[] = []
  for (let made = 0; made < count; made += 1) {
    const id = await deps.db.tx(async (tx) => {
      const now = deps.clock.now()
      const email = `${bytesToHex(deps.random.bytes(6))}@example.com`
      const owner = await upsertAccount(tx, {
        id: newId('acc', deps),
        email,
        name: null,
        acceptedAt: now,
        createdAt: now,
      })
      const founding = {
        name: 'Acme',
        type: 'team' as const,
        plan: 'enterprise' as const,
        ownerId: owner.id,
        environments: ['test' as const],
      }
      return (await foundOrganisation(acting, tx, founding)).organisation.id
    })
    tenants.push({ organisationId: id, environment: 'test' })
  }
  return tenants
}
