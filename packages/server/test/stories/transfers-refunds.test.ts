import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { RouteStatus } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { auditedActions } from '../audited.ts'
import { aPartnerStage, bridgeOf, type Managed, masters, type PartnerStage } from '../partner-stage.ts'
import type { Answer } from '../world.ts'

const hourMs = 3_600_000
/** As seldom as a transfer is ever looked at. */
const lookMsMax = 60_000
const hash = `0x${'ef'.repeat(32)}` as const

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** What the partner says from now on. */
function says(status: RouteStatus): void {
  stage.conduct = { status: async () => status }
}

const failing = (refund: 'unknown' | 'pending'): RouteStatus => ({
  state: 'failed',
  partnerStatus: `fails, ${refund}`,
  reason: 'The other side could not be paid.',
  refund,
})
const refunded = { ...failing('pending'), partnerStatus: 'refunded', refund: 'done', refundTxHash: hash } as const

/** Puts the clock forward, and has the transfer looked at after that. */
async function later(sent: Answer, hours: number): Promise<void> {
  stage.clock.forward(hours * hourMs)
  await expect.poll(() => lookAtOf(sent, 'look_at')).toBeGreaterThan(stage.clock.now().getTime())
}

/** When it is looked at next; 0 for never. */
async function lookAtOf({ body }: Answer, column: 'look_at' | 'refund_look_at'): Promise<number> {
  const { at } = await stage.world.database.db.one(
    z.object({ at: z.date().nullable() }),
    column === 'look_at'
      ? sql`select look_at as at from transfers where id = ${String(body.id)}`
      : sql`select refund_look_at as at from transfers where id = ${String(body.id)}`,
  )
  return Number(at)
}

/** As it is once it says so, while the clock goes on. */
async function until(sent: Answer, member: string, value: unknown, stepMs: number): Promise<Record<string, unknown>> {
  const read = async () => {
    stage.clock.forward(stepMs)
    return (await stage.get(sent))[member]
  }
  await expect.poll(read, { interval: 500 }).toEqual(value)
  return stage.get(sent)
}

async function sentBy(master: Managed, status: RouteStatus): Promise<Answer> {
  says(status)
  const sent = await stage.send(bridgeOf(master))
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe(status.partnerStatus)
  return sent
}

const eventsOf = async ({ body }: Answer) =>
  (await stage.eventsOf(body.id)).map(({ type, payload }) => [type, payload.reason, payload.refundedAt])
const toldOutstanding = [['transfer.failed', 'refund-outstanding', null]]
const outstanding = { status: 'failed', reason: 'refund-outstanding', refundTxHash: null, refundedAt: null }

function lineOf(words: string, { body }: Answer): string | undefined {
  return stage.lines.find((line) => line.includes(words) && line.includes(String(body.id)))
}

test('a refund that is announced is waited for three days; then the transfer ends as owed, and what comes later is seen beside that end', async () => {
  const master = await stage.aMaster()
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '50' } } }
  expect((await stage.world.call(stage.org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)).status).toBe(200)
  const isReleased = async () =>
    stage.world.database.db.many(
      z.object({ is: z.boolean() }),
      sql`select released_at is not null as is from policy_reservations where master_wallet_id = ${master.id}`,
    )
  const sent = await sentBy(master, failing('pending'))
  await later(sent, 71)
  expect((await stage.get(sent)).status).toBe('pending')
  stage.clock.forward(2 * hourMs)
  expect(await until(sent, 'status', expect.stringMatching(/ed$/), lookMsMax)).toMatchObject(outstanding)
  expect(await eventsOf(sent)).toEqual(toldOutstanding)
  expect(lineOf('a transfer ended with its refund owed', sent)).toContain('"level":50')
  expect(await isReleased(), 'the money is away').toEqual([{ is: false }])

  says(refunded)
  const late = { status: 'failed', reason: 'refund-outstanding', refundedAt: expect.any(String) }
  expect(await until(sent, 'refundTxHash', hash, hourMs)).toMatchObject(late)
  expect(await eventsOf(sent), 'told once').toEqual(toldOutstanding)
  expect(lineOf('a refund came after its transfer had ended', sent)).toBeDefined()
  expect(await isReleased()).toEqual([{ is: true }])
  expect(await auditedActions(stage.world.database.db, sent.body.id)).toEqual([
    'transfers.create api-key',
    'transfers.failed system',
    'transfers.refund system',
  ])
})

test('where the partner speaks of no refund a day is waited, since the money has left all the same', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  await later(sent, 23)
  expect((await stage.get(sent)).status).toBe('pending')
  stage.clock.forward(2 * hourMs)
  expect(await until(sent, 'status', expect.stringMatching(/ed$/), lookMsMax)).toMatchObject(outstanding)
})

test('a partner that fails and goes on is followed past those days, and may still deliver', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  says({ state: 'pending', partnerStatus: 'tries again' })
  await later(sent, 25)
  expect((await stage.get(sent)).status).toBe('pending')
  says({ state: 'completed', partnerStatus: 'delivered' })
  expect(await until(sent, 'status', expect.stringMatching(/ed$/), lookMsMax)).toMatchObject({ status: 'confirmed' })
})

test('a partner that fails again after it went on is not given its days anew', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  says({ state: 'pending', partnerStatus: 'tries again' })
  await later(sent, 25)
  says(failing('unknown'))
  expect(await until(sent, 'status', expect.stringMatching(/ed$/), lookMsMax)).toMatchObject(outstanding)
})

test('what is delivered after the end turns nothing around: an error is logged, and where it came to is shown', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  stage.clock.forward(25 * hourMs)
  await until(sent, 'status', 'failed', lookMsMax)
  says({ state: 'completed', partnerStatus: 'delivered', destinationTxHash: hash })
  expect(await until(sent, 'destinationTxHash', hash, hourMs)).toMatchObject(outstanding)
  expect(await eventsOf(sent)).toEqual(toldOutstanding)
  expect(lineOf('a partner delivered after its transfer had failed', sent)).toContain('"level":50')
})

test('a refund that never comes is asked for no more after thirty days, and somebody is told', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  stage.clock.forward(25 * hourMs)
  await until(sent, 'status', 'failed', lookMsMax)
  stage.clock.forward(29 * 24 * hourMs)
  const lookAt = () => lookAtOf(sent, 'refund_look_at')
  await expect.poll(lookAt).toBeGreaterThan(stage.clock.now().getTime())
  stage.clock.forward(24 * hourMs)
  await expect.poll(lookAt).toBe(0)
  expect(lineOf('a refund never came', sent)).toBeDefined()
  expect(await stage.get(sent)).toMatchObject(outstanding)
})
