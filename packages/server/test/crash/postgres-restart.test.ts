import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Db, openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { countSettling, expectBooksToAgree } from './books.ts'
import { startLoad } from './load.ts'
import { aRestartablePostgres, type RestartablePostgres } from './restartable-postgres.ts'
import { endEveryService, type Service } from './service.ts'
import { aDeployment, type Deployment } from './stage.ts'

let postgres: RestartablePostgres
let chain: DevChain
let deployment: Deployment
let db: Db

beforeAll(async () => {
  postgres = await aRestartablePostgres()
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  deployment = await aDeployment({ databaseUrl: postgres.url, chain, env: { SETTLE_WAIT_MS: '300' } })
  db = openDb({ url: postgres.url, connectionsMax: 4, log: createLog({ level: 'silent' }) })
})
afterAll(async () => {
  await endEveryService()
  await db?.close()
  await chain?.stop()
  await postgres?.remove()
})

test('PostgreSQL restarted and crashed under load: 503 meanwhile, nothing is lost, and the service recovers by itself', {
  timeout: 360_000,
}, async () => {
  const service = await deployment.start()
  const load = startLoad({ deployment, where: async () => service.base, buyers: 24 })
  const served = (more: number) => {
    const enough = load.acknowledged() + more
    return expect.poll(() => load.acknowledged(), { timeout: 90_000, interval: 10 }).toBeGreaterThanOrEqual(enough)
  }
  await served(40)
  for (const end of ['stop', 'kill'] as const) {
    await postgres.end(end)
    await expect.poll(() => statusOf(service, '/readyz')).toBe(503)
    expect(await statusOf(service, '/healthz')).toBe(200)
    const refused = load.unavailable()
    await expect.poll(() => load.unavailable(), { timeout: 60_000 }).toBeGreaterThan(refused)
    await postgres.start()
    await expect.poll(() => statusOf(service, '/readyz'), { timeout: 60_000 }).toBe(200)
    await served(40)
  }
  await load.stop()
  await expect.poll(() => countSettling(db), { timeout: 180_000, interval: 100 }).toBe(0n)

  const totals = await expectBooksToAgree({ db, chain, deployment }, load)
  console.log(`${JSON.stringify(totals)} ${JSON.stringify(load.counts)}`)
  expect(
    Object.keys(load.counts).filter((what) => what.endsWith('lost')),
    'the service itself never exited',
  ).toEqual([])
  expect(await service.end('SIGTERM')).toBe(0)
  expect(service.stderr()).toBe('')
})

async function statusOf({ base }: Service, page: string): Promise<number> {
  return (await fetch(base + page)).status
}
