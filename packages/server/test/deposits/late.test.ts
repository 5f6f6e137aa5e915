import { networkByName } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { markRestored } from '../../src/features/organisations/deletion-store.ts'
import { showQueues } from '../../src/monitoring/gauges.ts'
import { sql } from '../../src/platform/db/db.ts'
import { createMetrics } from '../../src/platform/metrics.ts'
import { aFakeChain, aTx } from './fake-chain.ts'
import { aFollowStage, anAddress, type FollowStage, transfer } from './follow-stage.ts'

let stage: FollowStage

beforeAll(async () => {
  const base = networkByName('base')
  if (base === undefined) throw new Error('no network')
  stage = await aFollowStage({ ...base, depositFinality: { depth: 3 } })
})
afterAll(() => stage?.stop())

/** How many deleted organisations the metrics show. */
async function alarms(): Promise<string | undefined> {
  const metrics = createMetrics()
  await showQueues({ ...stage.deps, metrics })
  const shown = await metrics.registry.metrics()
  return /^purser_queue_depth\{queue="deleted-organisations",network=""\} (\d+)$/m.exec(shown)?.[1]
}

test('live money that reaches a managed wallet of a deleted organisation is shown until it is restored; dust, flagged money and BYO wallets are not', async () => {
  const { db } = stage.database
  const { organisationId } = stage.tenant
  const chain = aFakeChain(stage.network, Math.floor(Date.now() / 1_000) - 600)
  chain.mineMany(299)
  const bad = anAddress()
  stage.deps.screening.setResult(bad, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  const [master, byo] = [await stage.wallet({ prefix: 'mwt' }), await stage.wallet()]
  const follow = await stage.follower([chain.node()])
  const receive = async (...sent: Parameters<typeof transfer>[]) => {
    chain.mine(sent.map((one) => aTx(transfer(...one))))
    chain.mineMany(3)
    await follow()
    await follow()
  }
  await follow()
  await receive([stage.usdc, master.address, 5_000_000n])
  await db.run(sql`update organisations set deleted_at = now() where id = ${organisationId}`)
  // A stranger's dust at another one.
  await db.run(sql`
    insert into late_deposits (organisation_id, transaction_id, tokens)
    select 'org_0' || n, 'wtx_0' || n, 0.0000001 from generate_series(1, 10000) as n`)
  await receive([stage.usdc, byo.address, 5_000_000n], [stage.usdc, master.address, 5_000_000n, bad])
  await receive([stage.usdc, master.address, 999_999n])
  expect(await alarms()).toBeUndefined()
  await receive([stage.usdc, master.address, 1n])
  expect(await alarms()).toBe('1')
  const { count } = await db.one(
    z.object({ count: z.number() }),
    sql`select count(*)::int as count from late_deposits where organisation_id = ${organisationId}`,
  )
  expect(count).toBe(3)
  await db.tx((tx) => markRestored(tx, organisationId))
  expect(await alarms()).toBeUndefined()
  await db.run(sql`update organisations set deleted_at = now() where id = ${organisationId}`)
  expect(await alarms(), 'money from before another deletion').toBeUndefined()
})
