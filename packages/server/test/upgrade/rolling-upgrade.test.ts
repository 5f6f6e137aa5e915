import path from 'node:path'
import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { countSettling, expectBooksToAgree } from '../crash/books.ts'
import { startLoad } from '../crash/load.ts'
import { endEveryService, type Service, startService } from '../crash/service.ts'
import { aDeployment } from '../crash/stage.ts'
import { countOpen, expectTransfersToAgree, holdingsOf } from '../crash/transfer-books.ts'
import { someWallets } from '../crash/transfer-load.ts'
import { anEmptyDatabase, type TestDatabase } from '../database.ts'
import { aReceiver, type Receiver } from '../webhooks/receiver.ts'
import { request } from '../world.ts'
import { createBalancer } from './balancer.ts'
import { startMixedLoad } from './mixed-load.ts'
import { isInHistory, type OlderVersion, runCommand, takeOlderVersion } from './older-version.ts'

/** The older version: `UPGRADE_FROM=<commit>` names another one. By default the last commit before the migrations from 0182 on. */
const commit = process.env.UPGRADE_FROM ?? '72d6e57e615a23875267bf57dcfcfdbe04864071'
const isThere = isInHistory(commit)
const presentAdmin = path.resolve(import.meta.dirname, '../../src/admin/main.ts')
/** Answers at each stage before the next begins. */
const answersOfStage = 150
const patient = { timeout: 120_000, interval: 20 }

let database: TestDatabase
let chain: DevChain
let older: OlderVersion
let receiver: Receiver

beforeAll(async () => {
  if (!isThere) return console.log(`the older version is not in the history of git here: ${commit}`)
  older = takeOlderVersion(commit)
  database = await anEmptyDatabase()
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  receiver = await aReceiver()
})
afterAll(async () => {
  await endEveryService()
  await receiver?.stop()
  await chain?.stop()
  await database?.drop()
  older?.remove()
})

test.skipIf(!isThere)(
  'a rolling upgrade under load, from an earlier version in the history of git: each request is answered, none with 5xx, and no money is lost or moves twice',
  { timeout: 300_000 },
  async () => {
    const migrated = await older.admin(['migrate'], { DATABASE_URL: database.url })
    expect(migrated, migrated.stderr).toMatchObject({ exitCode: 0 })
    const env = { SETTLE_WAIT_MS: '300', STOP_DELAY_MS: '2000', WEBHOOKS_ALLOW_PRIVATE: 'true' }
    const deployment = await aDeployment({ databaseUrl: database.url, chain, env, version: older })
    const balancer = createBalancer()
    const oldOnes = [await older.start(deployment.env), await older.start(deployment.env)] as const
    for (const service of oldOnes) await balancer.add(service)
    const caller = { apiKey: deployment.testKey, where: () => balancer.where() }
    const hook = { url: receiver.url, events: ['payment.settled'] }
    const hooked = { key: caller.apiKey, method: 'POST', path: '/webhooks', body: hook }
    expect((await request(await balancer.where(), hooked)).status).toBe(201)
    const wallets = await someWallets(caller, chain, 1)
    const before = await holdingsOf(chain, wallets)

    const payments = startLoad({ deployment, where: caller.where, buyers: 6 })
    const others = startMixedLoad({ ...caller, walletId: deployment.wallet.id, wallets })
    const answered = (): number => payments.acknowledged() + others.answered()
    const served = async (services: readonly Service[]): Promise<void> => {
      for (const service of services) {
        const enough = balancer.sentTo(service) + answersOfStage
        await expect.poll(() => balancer.sentTo(service), patient).toBeGreaterThanOrEqual(enough)
      }
    }
    const stages: Record<string, number> = {}
    const stage = async (name: string, services: readonly Service[]): Promise<void> => {
      await served(services)
      stages[name] = answered()
    }
    /** In the order of the runbook: readiness fails, the balancer turns away, and then the listener closes. */
    const replace = async (old: Service): Promise<Service> => {
      const ended = old.end('SIGTERM')
      await balancer.leaves(old)
      expect((await fetch(`${old.base}/healthz`)).status, 'the listener is open after readiness failed').toBe(200)
      expect(await ended).toBe(0)
      const next = await startService(deployment.env)
      await balancer.add(next)
      return next
    }
    await stage('older version', oldOnes)
    const began = performance.now()
    const upgraded = await runCommand(presentAdmin, ['migrate'], { DATABASE_URL: database.url })
    const migrateMs = Math.round(performance.now() - began)
    expect(upgraded, upgraded.stderr).toMatchObject({ exitCode: 0 })
    await stage('older version on the present tables', oldOnes)
    const first = await replace(oldOnes[0])
    await stage('one process of each version', [oldOnes[1], first])
    const second = await replace(oldOnes[1])
    await stage('present version', [first, second])
    await payments.stop()
    await others.stop()
    await expect.poll(() => countSettling(database.db), patient).toBe(0n)
    await expect.poll(() => countOpen(database.db), patient).toBe(0)

    const migrations = await countMigrationsAfter(older.newestMigration)
    const totals = await expectBooksToAgree({ db: database.db, chain, deployment }, payments)
    console.log(JSON.stringify({ commit, migrations, migrateMs, stages, totals, ...payments.counts, ...others.counts }))
    expect(migrations, 'the versions have different tables').toBeGreaterThan(0)
    expect(others.faults).toEqual([])
    expect(Object.keys(payments.counts).filter((what) => / (lost|5\d\d)/.test(what))).toEqual([])
    expect(totals.settled).toBeGreaterThan(0)
    await expectTransfersToAgree({ db: database.db, chain, wallets, before }, others.transfers)
    await expectVaults(others.vaults.flatMap(({ documents }) => documents))
    await expect.poll(() => new Set(receiver.ids()).size, patient).toBe(totals.settled)
    await balancer.stop()
    for (const service of [first, second]) expect(await service.end('SIGTERM')).toBe(0)
  },
)

const Count = z.object({ count: z.bigint().transform(Number) })

async function countMigrationsAfter(name: string): Promise<number> {
  return (await database.db.one(Count, sql`select count(*) as count from schema_migrations where name > ${name}`)).count
}

/** Every acknowledged document is there. */
async function expectVaults(documents: readonly string[]): Promise<void> {
  expect(documents.length).toBeGreaterThan(0)
  const { count } = await database.db.one(
    Count,
    sql`select count(*) as count from vault_documents where id = any(${documents}::text[])`,
  )
  expect(count).toBe(documents.length)
}
