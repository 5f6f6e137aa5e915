import { networkByName } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createRecorder } from '../src/features/payments/index.ts'
import { beginRecording } from '../src/features/payments/record-store.ts'
import { changeCounters, changeGasLast, dayOf, gasLockName, paymentsLockName } from '../src/features/plans/index.ts'
import { storeGasless } from '../src/features/transfers/gasless/begin.ts'
import { utcMonthOf } from '../src/platform/clock.ts'
import { sql } from '../src/platform/db/db.ts'
import { newId } from '../src/platform/ids.ts'
import { forTenant, systemCtx } from '../src/platform/work/runner.ts'
import { freshDatabase } from './database.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { aStage, type Stage } from './sim/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(() => stage?.stop())

/** The number of connections that wait for a lock. */
async function countWaiting(): Promise<number> {
  const statement = sql`select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return (await stage.db.many(z.object({}), statement)).length
}

test('a payment that is recorded while another ends locks the month’s count before the gas budget, as ending does', async () => {
  const { db, deps, network } = stage
  const [tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const apiKeyId = newId('key', deps)
  const ctx = { ...forTenant(systemCtx(deps), tenant), actor: { kind: 'api-key', apiKeyId } as const }
  const [from, to, nonce] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`, `0x${'3'.repeat(64)}`] as const
  const authorization = { from, to, value: 10_000n, validBefore: 4_000_000_000n, nonce }
  const signed = { form: 'eip3009', authorization } as const
  const payment = newPaymentOf(ctx, stage, {
    signed,
    kind: 'honest',
    entryPoint: 'verify',
    claimKey: 'one',
    challengeId: '',
  })
  const record = createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 15n, openPerPayerMax: 100, verifiedMsMax: 60_000 })
  let recording: Promise<void> | undefined
  await db.tx(async (tx) => {
    await changeCounters(tx, [{ tenant, kind: 'payments', period: utcMonthOf(payment.createdAt), n: 1 }])
    recording = record({ ctx, payment })
    await expect.poll(countWaiting, { interval: 20 }).toBe(1)
    changeGasLast(tx, [{ tenant, network: network.name, day: dayOf(payment.createdAt), nanoUsd: 1n }])
  })
  await recording
  const { used } = await db.one(
    z.object({ used: z.bigint() }),
    sql`select used from usage_counters where kind = 'payments'`,
  )
  expect(used).toBe(2n)
})

test('transfers on two networks at the operator’s cost lock the budgets of both before the account, as a payment on the second does', async () => {
  const { db, deps } = stage
  const [, tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  const { organisationId, environment } = tenant
  const accountId = newId('acc', deps)
  await db.run(sql`insert into accounts (id, email, created_at) values (${accountId}, 'two@example.com', now())`)
  await db.run(
    sql`update organisations set plan = 'hobby', quota_account_id = ${accountId} where id = ${organisationId}`,
  )
  const ctx = { ...forTenant(systemCtx(deps), tenant), settleNanoUsdPerDayMax: 0n }
  const address = `0x${'4'.repeat(40)}` as const
  const wanted = ['arbitrum', 'base'].map((name) => {
    const network = networkByName(name)
    if (network === undefined) throw new Error('no such network')
    return { ctx, transferId: newId('wtx', deps), plan: { source: { address }, network, coin: { address } } }
  })
  const quota = `quota:${accountId}/${environment}/payments`
  const lockNames = [paymentsLockName(tenant), gasLockName({ tenant, network: 'base' })]
  let all: Promise<unknown> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${quota}, 0))`)
    const stored = db.tx((other) => storeGasless(other, wanted))
    await expect.poll(countWaiting, { interval: 20 }).toBe(1)
    const recorded = db.tx((other) => beginRecording(other, tenant, lockNames))
    await expect.poll(countWaiting, { interval: 20 }).toBe(2)
    all = Promise.all([stored, recorded])
  })
  expect(await all).toMatchObject([{ over: wanted }, 'hobby'])
})
