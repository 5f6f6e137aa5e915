import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { countSettling, expectBooksToAgree } from './books.ts'
import { type Exchange, startClients } from './exchanges.ts'
import type { Purchase } from './load.ts'
import { endEveryService, spawnService } from './service.ts'
import { aDeployment, type Deployment } from './stage.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 1 })
  deployment = await aDeployment({ databaseUrl: database.url, chain, env: { SETTLE_WAIT_MS: '4000' } })
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

test('SIGTERM under load cuts no request: each that was sent is answered whole, nothing is left half done, and the exit code is 0', {
  timeout: 360_000,
}, async () => {
  const purchases: Purchase[] = []
  for (let round = 0; round < 3; round++) {
    const service = await spawnService(deployment.env).up()
    const clients = startClients(deployment, service.base, 16)
    await expect.poll(() => clients.exchanges.length, { timeout: 60_000, interval: 5 }).toBeGreaterThan(40)
    await expect.poll(() => clients.underWay('settle'), { timeout: 60_000, interval: 1 }).toBeGreaterThan(6)
    clients.signal()
    const ended = await service.end('SIGTERM')
    await clients.ended
    purchases.push(...clients.purchases)

    const sent = clients.exchanges.filter((entry) => entry.sentBeforeSignal)
    const late = clients.exchanges.filter((entry) => !entry.sentBeforeSignal)
    console.log(`round ${round}: ${JSON.stringify({ sent: sent.length, late: tally(late) })}`)
    expect(sent.filter(({ outcome }) => outcome !== 'answered')).toEqual([])
    expect(sent.filter(({ status = 0 }) => status !== 200 && status !== 202)).toEqual([])
    expect([ended, service.stderr()]).toEqual([0, ''])
    expect(
      await countActedUpon(late.filter(({ outcome }) => outcome === 'cut')),
      'a request was accepted and cut',
    ).toBe(0n)
    // PostgreSQL takes a moment to notice a closed connection; nothing else can change these counts.
    await expect.poll(countHalfDone).toEqual({ openTransactions: 0n, runningKeys: 0n, relaysWithoutTransaction: 0n })
  }
  const service = await spawnService(deployment.env).up()
  await expect.poll(() => countSettling(database.db), { timeout: 90_000 }).toBe(0n)
  const totals = await expectBooksToAgree({ db: database.db, chain, deployment }, { purchases, faults: [] })
  expect(totals.settleAcknowledged).toBeGreaterThan(20)
  expect(await service.end('SIGTERM')).toBe(0)
})

function tally(entries: readonly { readonly outcome: string; readonly error?: string }[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome, error = '' } of entries)
    counts[`${outcome} ${error}`.trim()] = (counts[`${outcome} ${error}`.trim()] ?? 0) + 1
  return counts
}

/** What an interrupted process leaves behind: open database transactions, running idempotency keys, relays between two states. */
function countHalfDone() {
  return database.db.one(
    z.object({ openTransactions: z.bigint(), runningKeys: z.bigint(), relaysWithoutTransaction: z.bigint() }),
    sql`
    select
      (select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%') as "openTransactions",
      (select count(*) from idempotency_keys where state = 'running') as "runningKeys",
      (select count(*) from relays where state = 'included' and transaction_id is null) as "relaysWithoutTransaction"`,
  )
}

/** How many of these requests took effect: a recorded payment, or a requested settlement. */
async function countActedUpon(exchanges: readonly Exchange[]): Promise<bigint> {
  const noncesOf = (step: Exchange['step']) =>
    exchanges.filter((entry) => entry.step === step).map(({ purchase }) => purchase.nonce)
  const row = await database.db.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from payments
    where settlement ->> 'nonce' = any(${noncesOf('verify')}::text[])
      or (settlement ->> 'nonce' = any(${noncesOf('settle')}::text[]) and status <> 'verified')`,
  )
  return row.count
}
