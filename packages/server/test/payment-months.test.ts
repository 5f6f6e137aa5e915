import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { lockRedeemable, markDelivered } from '../src/features/payments/delivery/store.ts'
import { findClaimed } from '../src/features/payments/facilitator/discovery-store.ts'
import { createRecorder } from '../src/features/payments/index.ts'
import {
  findPurchase,
  isAnyDue,
  isUsed,
  listOpenHashes,
  takeDue,
} from '../src/features/payments/methods/mpp-tempo/store.ts'
import { findFingerprint } from '../src/features/payments/record-store.ts'
import { listRefunds, takeDue as takeDueRefunds } from '../src/features/payments/refunds/store.ts'
import {
  addGasUsed,
  forgetHashes,
  isAnyToCheck,
  listOpenOf,
  listOutcomes,
  listToCheck,
  lockPayments,
  markHashes,
  markingSettling,
  markPaymentsEnded,
  markSettled,
  setCheckAt,
} from '../src/features/payments/settlement-store.ts'
import { findCut, listIntervals } from '../src/features/payments/statistics/store.ts'
import {
  findPayment,
  findPaymentByLog,
  listNamedPayments,
  listPayments,
  listTakenClaims,
} from '../src/features/payments/store.ts'
import { findSessionOf, listSessions, markRevoked } from '../src/features/sessions/store.ts'
import { listDepths } from '../src/monitoring/store.ts'
import type { Sql, Tx } from '../src/platform/db/db.ts'
import { dbInside, sql } from '../src/platform/db/db.ts'
import { firstIdAt } from '../src/platform/db/page.ts'
import { listPartitions, partitionedTables, plain } from '../src/platform/db/partitions.ts'
import { newId } from '../src/platform/ids.ts'
import { forTenant, systemCtx } from '../src/platform/work/runner.ts'
import { freshDatabase } from './database.ts'
import { explaining, monthPlans, partitionsOf, scansOf } from './month-plans.ts'
import { addPastMonths } from './past-months.ts'
import { newPaymentOf } from './sim/new-payment.ts'
import { aStage, type Stage } from './sim/stage.ts'

let stage: Stage
let months: Date[]

const now = new Date()
const monthsBefore = 60
const rowsPerMonth = 300
const limit = 10
const network = 'base-sepolia'
const asset = `0x${'a'.repeat(40)}`
const key = 'key_01h455vb4pex5vsknk084sn02q'
const payTo = `0x${'d'.repeat(40)}` as const

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
  const { db } = stage
  months = await addPastMonths(
    db,
    now,
    monthsBefore,
    partitionedTables.filter(({ table }) => table === 'payments'),
  )
  for (const month of months) {
    const times = Array.from({ length: rowsPerMonth }, (_, n) => new Date(month.getTime() + n * 8_000_000))
    const ids = ['pay', 'plog'].map((prefix) => times.map((at) => firstIdAt(prefix, at.getTime())))
    await db.run(sql`
      insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, door, scheme, claim_key, challenge_id, payment_identifier,
        chain, network, token, asset, decimals, raw_amount, payer, pay_to, status, route, settled_at, created_at)
      select pay, plog, ${own().organisationId}, 'test', ${key}, 'x402', 'verify', 'exact', 'claim ' || pay, 'challenge ' || pay, 'identifier-' || pay,
        ${network}, ${network}, 'USDC', ${asset}, 6, 1, '0x' || n, ${payTo}, 'settled', 'route' || n % 3, at, at
      from unnest(${ids[0]}::text[], ${ids[1]}::text[], ${times.map((at) => at.toISOString())}::timestamptz[]) with ordinality as given (pay, plog, at, n)`)
  }
  for (const { name, untilAt } of await listPartitions(db, { table: 'payments' }))
    if (untilAt !== undefined && untilAt <= now) await db.run(plain(`vacuum (analyze) ${name}`))
  await db.run(plain('vacuum (analyze) payment_claims'))
  const [refundId, transferId] = [firstIdAt('rfd', now.getTime()), firstIdAt('wtx', now.getTime())]
  await db.tx(async (tx) => {
    // Only the refund and its payment matter here.
    await tx.run(sql`set local session_replication_role = replica`)
    await tx.run(sql`
      insert into payment_refunds (id, organisation_id, environment, payment_id, transfer_id, raw_amount, created_at, check_at)
      values (${refundId}, ${own().organisationId}, 'test', ${oldest()}, ${transferId}, 1, ${now}, ${now})`)
  })
}, 120_000)
afterAll(() => stage?.stop())

function own() {
  const [tenant] = stage.tenants
  if (tenant === undefined) throw new Error('there is no organisation')
  return tenant
}

const plansOf = (work: (tx: Tx) => Promise<unknown>) => monthPlans(stage.db, /\bpayments\b/, work)
const partitionsIn = (plan: string): string[] => partitionsOf('payments', plan)
const scansIn = (plan: string): string[] => scansOf('payments', months, plan)

/** A payment of a month in the middle, and another of the month after. */
const old = (): `pay_${string}`[] =>
  [30, 31].map((at) => firstIdAt('pay', months[at]?.getTime() ?? 0) as `pay_${string}`)
const oldest = (): `pay_${string}` => old()[0] ?? 'pay_'
const logOf = (id: string) => `plog_${id.slice(4)}` as const
const page = { limit, after: undefined }
const payer = { payer: '0x5', network, asset }
const hour = () => {
  const from = new Date((months[30]?.getTime() ?? 0) + 60_000)
  return { from, to: new Date(from.getTime() + 600_000), grain: 'quarter' as const }
}
const reading = (is: Sql) => (tx: Tx) => tx.many(z.looseObject({}), sql`select 1 as one where ${is}`)

/** Statements that have to look into each month, and those that look into the months of their ids. */
const everywhere: readonly (readonly [name: string, work: (tx: Tx) => Promise<unknown>])[] = [
  ['logs', (tx) => listPayments(tx, own(), {}, page)],
  ['logs after a cursor', (tx) => listPayments(tx, own(), {}, { limit, after: logOf(oldest()) })],
  ['logs of a route', (tx) => listPayments(tx, own(), { route: 'route1' }, page)],
  ['logs of no wallet', (tx) => listPayments(tx, own(), { walletId: 'mwt_x' }, page)],
  ['logs of a key', (tx) => listPayments(tx, own(), { apiKeyId: key }, page)],
  ['logs of a period', (tx) => listPayments(tx, own(), { protocol: 'x402', ...hour() }, page)],
  ['the cut of statistics', (tx) => findCut(tx, own(), hour(), 5)],
  ['statistics', (tx) => listIntervals(tx, own(), hour(), { from: hour().from, seconds: 60 })],
  ['a log of an older version', (tx) => findPaymentByLog(tx, own(), 'plog_01h455vb4pex5vsknk084sn02q')],
  ['whether any is to check', reading(isAnyToCheck([network], now))],
  ['those to check', (tx) => listToCheck(tx, network, { now, most: 5, cursors: new Map() })],
  ['the open ones of a payer', (tx) => listOpenOf(tx, payer, 5)],
  ['the open hashes of a payer', (tx) => listOpenHashes(tx, payer, 5)],
  ['whether any is sent', reading(isAnyDue([network]))],
  ['those sent', (tx) => takeDue(dbInside(tx), network, { most: limit, cursors: new Map() })],
  ['sessions to revoke', (tx) => markRevoked(tx, now, 5)],
  ['the depths of queues', (tx) => listDepths(tx)],
  ['a redemption by claims', (tx) => lockRedeemable(tx, own(), { claimKeys: [`claim ${oldest()}`] })],
  ['a redemption by challenge', (tx) => lockRedeemable(tx, own(), { challengeId: `challenge ${oldest()}` })],
  ['a payment by its claim', (tx) => findClaimed(tx, `claim ${oldest()}`)],
  ['what a challenge has bought', (tx) => findPurchase(tx, `challenge ${oldest()}`)],
  ['a fingerprint', (tx) => findFingerprint(tx, own(), { payer: '0x01', paymentIdentifier: `identifier-${oldest()}` })],
  ['sessions', (tx) => listSessions(tx, own(), page)],
  ['a session', (tx) => findSessionOf(tx, own(), oldest())],
  ['refunds', (tx) => listRefunds(tx, own(), oldest(), page)],
  ['due refunds', (tx) => takeDueRefunds(tx, { now, most: limit, cursors: new Map() })],
]

test.each(everywhere)('%s: no month of 60 is read whole', async (_name, work) => {
  for (const { plan } of await plansOf(work)) expect(scansIn(plan), plan).toEqual([])
})

const byId: readonly (readonly [name: string, work: (tx: Tx) => Promise<unknown>])[] = [
  ['a payment', (tx) => findPayment(tx, own(), oldest())],
  [
    'payments',
    (tx) =>
      listNamedPayments(
        tx,
        old().map((paymentId) => ({ tenant: own(), paymentId })),
      ),
  ],
  ['a log', (tx) => findPaymentByLog(tx, own(), logOf(oldest()))],
  ['a redemption', (tx) => lockRedeemable(tx, own(), { id: oldest() })],
  ['outcomes', (tx) => listOutcomes(tx, old())],
  ['locks', (tx) => lockPayments(tx, old())],
  ['settling', (tx) => tx.run(markingSettling(old(), now))],
  ['deliveries', (tx) => markDelivered(tx, own(), old(), now)],
  [
    'hashes',
    (tx) =>
      markHashes(
        tx,
        old().map((paymentId) => ({ paymentId, hash: '0x1' })),
      ),
  ],
  ['forgotten hashes', (tx) => forgetHashes(tx, old())],
  [
    'settled ones',
    (tx) =>
      markSettled(
        tx,
        old().map((id) => ({ id, txHash: null, gasNanoUsd: 1n })),
        now,
      ),
  ],
  [
    'ended ones',
    (tx) =>
      markPaymentsEnded(
        tx,
        old().map((id) => ({ id, status: 'voided', reason: 'x' })),
      ),
  ],
  [
    'gas',
    (tx) =>
      addGasUsed(
        tx,
        old().map((paymentId) => ({ paymentId, nanoUsd: 1n })),
      ),
  ],
  [
    'next checks',
    (tx) =>
      setCheckAt(
        tx,
        old().map((id) => ({ id, checkAt: now })),
      ),
  ],
]

test.each(byId)('%s of two months: no other month is opened', async (_name, work) => {
  for (const { plan } of await plansOf(work)) {
    expect(scansIn(plan), plan).toEqual([])
    expect(partitionsIn(plan).length, plan).toBeLessThanOrEqual(2)
  }
})

test('claims are looked for in their own table alone', async () => {
  const claims = [`claim ${oldest()}`, 'claim of nobody']
  expect(await listTakenClaims(stage.db, claims)).toEqual(new Set([claims[0]]))
  expect(await isUsed(stage.db, `challenge ${old()[1]}`)).toBe(true)
  expect(await isUsed(stage.db, 'none')).toBe(false)
  expect((await findClaimed(stage.db, claims[0] ?? ''))?.id).toBe(oldest())
})

test('recording a payment reads no month whole', async () => {
  const { deps } = stage
  const actor = { kind: 'api-key', apiKeyId: newId('key', deps) } as const
  const ctx = { ...forTenant(systemCtx(deps), own()), actor }
  for (const mode of ['force_generic_plan', 'force_custom_plan']) {
    const { db, sent } = explaining(stage.db, mode, /\bpayments\b/)
    const record = createRecorder({ db }, { nanoUsdPerDayMax: 10n ** 18n, openPerPayerMax: 100, verifiedMsMax: 60_000 })
    const authorization = {
      from: payTo,
      to: payTo,
      value: 1n,
      validBefore: 4_000_000_000n,
      nonce: `0x${'1'.repeat(64)}`,
    } as const
    const bought = {
      signed: { form: 'eip3009', authorization },
      kind: 'honest',
      entryPoint: 'verify',
      claimKey: mode,
      challengeId: '',
    } as const
    await record({ ctx, payment: newPaymentOf(ctx, stage, bought), funds: { rawBalance: 10n, spentIds: [] } })
    expect(sent.length).toBeGreaterThan(0)
    for (const { plan } of sent) expect(scansIn(plan), plan).toEqual([])
  }
})
