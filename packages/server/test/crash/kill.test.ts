import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { request } from '../world.ts'
import { countSettling, countTransactions, expectBooksToAgree } from './books.ts'
import { type Keeper, keepService } from './keeper.ts'
import { type Load, startLoad } from './load.ts'
import { mulberry32, seed } from './seed.ts'
import { endEveryService } from './service.ts'
import { aDeployment, type Deployment, verifyBody } from './stage.ts'

/** `CRASH_KILLS=20` makes a long one. */
const kills = Number(process.env.CRASH_KILLS ?? 10)
const buyers = 16

let database: TestDatabase
let chain: DevChain
let deployment: Deployment
let keeper: Keeper

beforeAll(async () => {
  database = await freshDatabase()
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.5 })
  deployment = await aDeployment({
    databaseUrl: database.url,
    chain,
    env: { SETTLE_WAIT_MS: '600', LOG_LEVEL: 'info' },
  })
  keeper = keepService(deployment)
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

test(`kill -9 ${kills} times at random moments under load loses nothing that was acknowledged and pays nothing twice`, {
  timeout: 900_000,
}, async () => {
  const random = mulberry32(seed)
  const begun = performance.now()
  const load = startLoad({ deployment, where: keeper.where, buyers })
  for (let kill = 0; kill < kills; kill++) {
    await keeper.start()
    await someMoment(random, load)
    expect(await keeper.end('SIGKILL')).toBe('SIGKILL')
  }
  await keeper.start()
  await load.stop()
  await expect.poll(() => countSettling(database.db), { timeout: 180_000, interval: 100 }).toBe(0n)

  const totals = await expectBooksToAgree({ db: database.db, chain, deployment }, load)
  console.log(
    `seed ${seed}, ${kills} kills, ${Math.round(performance.now() - begun)} ms: ${JSON.stringify(totals)} ${JSON.stringify(load.counts)}`,
  )
  expect(totals.settleAcknowledged).toBeGreaterThan(kills)
  expect(Object.keys(load.counts), 'the kills met requests under way').toEqual(
    expect.arrayContaining(['verify lost', 'settle lost']),
  )
  await expectRepeatsToAgree(load)
  expect(await keeper.end('SIGTERM')).toBe(0)
})

/** Waits for one of these: some answers, a signed transaction, one in a block. Then waits a little longer. */
async function someMoment(random: () => number, load: Load): Promise<void> {
  const moments = [
    { grown: 1 + Math.floor(random() * 16), count: async () => load.acknowledged() },
    { grown: 1, count: () => countTransactions(database.db, 'sent') },
    { grown: 1, count: () => countTransactions(database.db, 'final') },
  ]
  const moment = moments[Math.floor(random() * moments.length)]
  if (moment === undefined) throw new Error('no such moment')
  const enough = (await moment.count()) + moment.grown
  await expect
    .poll(moment.count, { timeout: 90_000, interval: 10 })
    .toBeGreaterThanOrEqual(enough)
    .catch(async (error: unknown) => {
      throw new Error(`nothing happened: ${await stateOf(load)}`, { cause: error })
    })
  await delay(random() * 100)
}

/** The state that explains a load without progress: its answers, the transactions by state, and the end of the service's log. */
async function stateOf(load: Load): Promise<string> {
  const transactions = await database.db.many(
    z.object({ status: z.string(), count: z.bigint() }),
    sql`select status, count(*) as count from chain_transactions group by status`,
  )
  const counted = Object.fromEntries(transactions.map(({ status, count }) => [status, Number(count)]))
  const log = keeper.service().stdout().split('\n').slice(-60).join('\n')
  return `${JSON.stringify({ answers: load.counts, faults: load.faults, transactions: counted })}\n${log}`
}

/**
 * Answers acknowledged before a crash are the same after it, and settling again moves nothing. The last ones: an expired
 * authorization would be refused for that.
 */
async function expectRepeatsToAgree(load: Load): Promise<void> {
  const base = await keeper.where()
  const post = (path: string, body: unknown, headers = {}) =>
    request(base, { key: deployment.testKey, method: 'POST', path, body, headers })
  for (const { verified, settled, credential, nonce } of load.purchases.slice(-60)) {
    if (verified === undefined || settled === undefined) continue
    const { paymentId, settlementToken } = verified
    const key = verified.withKey ? { 'idempotency-key': `verify-${nonce}` } : {}
    const again = await post('/payments/verify', verifyBody(deployment.wallet.id, credential), key)
    if (verified.withKey) expect([again.status, again.body.paymentId]).toEqual([200, paymentId])
    else expect(again.status).toBe(409)
    const settledAgain = await post('/payments/settle', { paymentId, settlementToken })
    expect([settledAgain.status, settledAgain.body.txHash]).toEqual([
      200,
      settled.txHash ?? expect.stringMatching(/^0x/),
    ])
  }
}
