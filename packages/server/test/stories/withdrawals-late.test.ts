import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Sql, sql } from '../../src/platform/db/db.ts'
import { auditedOf } from '../audited.ts'
import { aBridge, type BridgeDouble, type BridgeTransfer, type Delivery } from '../bridge-double.ts'
import { aLiveStage, type LiveStage } from '../live-stage.ts'
import type { Managed } from '../partner-stage.ts'
import type { Answer } from '../world.ts'

let base: DevChain
let bridge: BridgeDouble
let stage: LiveStage

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  bridge = await aBridge()
  const { url: baseUrl, webhookPublicKey } = bridge
  stage = await aLiveStage([base], {
    bridge: { baseUrl, apiKey: 'sk-bridge', webhookPublicKey },
  })
})
afterAll(async () => {
  await stage?.stop()
  await bridge?.stop()
  await base?.stop()
})

const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
const call = (method: string, path: string, body?: unknown) => stage.world.call(stage.org.liveKey, method, path, body)

async function withdraw(master: Managed): Promise<Answer> {
  const account = await call('POST', '/wallet-infra/bank-accounts', gbp)
  const moved = { token: 'USDC', chain: 'base', amount: '60', bankAccountId: account.body.id, reference: 'Invoice 7' }
  return call('POST', '/wallet-infra/withdraw', { fromWalletId: master.id, ...moved })
}

interface Begun {
  readonly master: Managed
  readonly made: Answer
  readonly payout: BridgeTransfer
}

/** A withdrawal of 60 of 100 USDC, and its transfer at Bridge. */
async function begun(): Promise<Begun> {
  const master = await stage.aMaster()
  const made = await withdraw(master)
  expect([made.status, made.body.status]).toEqual([201, 'pending_conversion'])
  const payout = bridge.transfers.find(({ key }) => key === made.body.id)
  if (payout === undefined) throw new Error('Bridge got no request')
  return { master, made, payout }
}

const read = async ({ made }: Begun) => (await call('GET', `/wallet-infra/withdrawals/${made.body.id}`)).body
const until = (one: Begun, status: string) =>
  expect.poll(async () => (await read(one)).status, { interval: 100 }).toBe(status)

async function deliver({ headers, body }: Delivery): Promise<number> {
  const url = `${stage.world.base}/partners/bridge/webhooks`
  return (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }))
    .status
}

const says = (payout: BridgeTransfer, state: string) => {
  payout.state = state
  return deliver(bridge.delivery(payout))
}

const Reported = z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) })
const reportOf = async ({ made }: Begun) => {
  const statement = sql`select type, payload from events where payload ->> 'withdrawalId' = ${String(made.body.id)} order by id`
  return (await stage.world.database.db.many(Reported, statement)).map(({ type }) => type)
}

async function hintsOf({ id }: BridgeTransfer): Promise<number> {
  const statement = sql`select count(*)::int as count from payout_hints where payout_id = ${id}`
  return (await stage.world.database.db.one(z.object({ count: z.number() }), statement)).count
}

test('a payout that Bridge pays after it failed is completed, published, and may fail again', async () => {
  const one = await begun()
  await says(one.payout, 'error')
  await until(one, 'failed')
  expect(await read(one)).toMatchObject({ reason: 'payout-failed', refund: 'held', completedAt: null })
  await says(one.payout, 'payment_processed')
  await until(one, 'completed')
  const paid = { refund: null, reason: 'payout-failed', completedAt: expect.any(String), failedAt: expect.any(String) }
  expect(await read(one)).toMatchObject({ ...paid, payoutAmount: '59.5' })
  expect(await reportOf(one)).toEqual(['withdrawal.failed', 'withdrawal.completed'])
  expect(stage.lines.join('')).toContain('a partner paid a withdrawal that had failed')
  const audited = await auditedOf(stage.world.database.db, one.made.body.id)
  expect(audited.slice(-2)).toMatchObject([
    { action: 'withdrawals.failed' },
    { action: 'withdrawals.completed', details: { failedFor: 'payout-failed' } },
  ])

  await says(one.payout, 'returned')
  await until(one, 'failed')
  expect(await read(one)).toMatchObject({ reason: 'payout-returned', refund: 'expected' })
  await says(one.payout, 'payment_processed')
  await until(one, 'completed')
  expect(await reportOf(one)).toEqual([
    'withdrawal.failed',
    'withdrawal.completed',
    'withdrawal.failed',
    'withdrawal.completed',
  ])
})

const ageOf = async (one: Begun, changes: Sql) => {
  await stage.world.database.db.run(sql`update withdrawals set ${changes} where id = ${String(one.made.body.id)}`)
}
const nextPollOf = async (one: Begun) => {
  const statement = sql`select next_look_at as due_at from withdrawals where id = ${String(one.made.body.id)}`
  return (await stage.world.database.db.one(z.object({ dueAt: z.date().nullable() }), statement)).dueAt
}

test('a refund is recorded however late it comes: thirty days are counted from the failure, and a hint makes it due after them', async () => {
  const one = await begun()
  await expect.poll(() => tokenBalance(base, 'USDC', one.payout.toAddress)).toBe(60_000_000n)
  await ageOf(one, sql`created_at = created_at - interval '40 days'`)
  await says(one.payout, 'undeliverable')
  await until(one, 'failed')
  await expect.poll(() => hintsOf(one.payout)).toBe(0)
  const isFollowed = async () => (await nextPollOf(one)) !== null
  expect(await isFollowed()).toBe(true)
  await ageOf(one, sql`failed_at = failed_at - interval '40 days', next_look_at = now()`)
  await expect.poll(isFollowed).toBe(false)
  await says(one.payout, 'refunded')
  await expect.poll(async () => (await read(one)).refund).toBe('done')
  await expect.poll(isFollowed).toBe(false)
})
