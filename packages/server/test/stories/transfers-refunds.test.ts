import { fundToken } from '@purser/devnet'
import type { Hex } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { RouteStatus } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { auditedActions } from '../audited.ts'
import {
  aPartnerStage,
  aSettledPayment,
  bridgeOf,
  type Managed,
  masters,
  type PartnerStage,
  stranger,
} from '../partner-stage.ts'
import type { Answer } from '../world.ts'

const hourMs = 3_600_000
/** The longest interval between two polls of a transfer. */
const lookMsMax = 60_000
const hash = `0x${'ef'.repeat(32)}` as const

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** Sets the partner's answer from now on. */
function says(status: RouteStatus): void {
  stage.conduct = { status: async () => status }
}

const failing = (refund: 'unknown' | 'pending'): RouteStatus => ({
  state: 'failed',
  partnerStatus: `fails, ${refund}`,
  reason: 'The destination could not be paid.',
  refund,
})
const refundedBy = (refundTxHash?: Hex): RouteStatus => ({
  ...{ state: 'failed', partnerStatus: 'refunded', reason: 'The destination could not be paid.', refund: 'done' },
  ...(refundTxHash === undefined ? {} : { refundTxHash }),
})

/** Pays 50 USDC on Base, like a partner that refunds. */
const payBack = ({ address }: Pick<Managed, 'address'>, raw = 50_000_000n) =>
  fundToken(stage.base, 'USDC', address, raw)

/** Moves the clock, and polls the transfer after that. */
async function later(sent: Answer, hours: number): Promise<void> {
  stage.clock.forward(hours * hourMs)
  await expect.poll(() => lookAtOf(sent)).toBeGreaterThan(stage.clock.now().getTime())
}

/** The time of its next poll; 0 for never. */
async function lookAtOf({ body }: Answer): Promise<number> {
  const { at } = await stage.world.database.db.one(
    z.object({ at: z.date().nullable() }),
    sql`select look_at as at from transfers where id = ${String(body.id)}`,
  )
  return Number(at)
}

/** Returns the transfer once the member has this value, while the clock advances. */
async function until(sent: Answer, member: string, value: unknown, stepMs: number): Promise<Record<string, unknown>> {
  const read = async () => {
    stage.clock.forward(stepMs)
    return (await stage.get(sent))[member]
  }
  await expect.poll(read, { interval: 500 }).toEqual(value)
  return stage.get(sent)
}

async function sentBy(master: Managed, status: RouteStatus, changes: Record<string, unknown> = {}): Promise<Answer> {
  says(status)
  const sent = await stage.send(bridgeOf(master, changes))
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe(status.partnerStatus)
  return sent
}

const eventsOf = async ({ body }: Answer) => (await stage.eventsOf(body.id)).map(({ type }) => type)
const stillOpen = { status: 'pending', reason: null, refundTxHash: null, refundedAt: null, destinationTxHash: null }
const isEnd = expect.stringMatching(/ed$/)

/** Moves the clock until an event reports the refund as overdue. */
async function untilOverdue(sent: Answer): Promise<void> {
  const reported = () => {
    stage.clock.forward(lookMsMax)
    return eventsOf(sent)
  }
  await expect.poll(reported, { interval: 500 }).toEqual(['transfer.refund_overdue'])
}

function lineOf(words: string, { body }: Answer): string | undefined {
  return stage.lines.find((line) => line.includes(words) && line.includes(String(body.id)))
}

test.each(['pending', 'unknown'] as const)(
  'a refund that is %s is waited for; after three days an event reports it as overdue, once, and the money stays counted',
  async (refund) => {
    const master = await stage.aMaster()
    const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '50' } } }
    const policyPath = `${masters}/${master.id}/policy`
    expect((await stage.world.call(stage.org.testKey, 'PUT', policyPath, policy)).status).toBe(200)
    const isReleased = async () =>
      stage.world.database.db.many(
        z.object({ is: z.boolean() }),
        sql`select released_at is not null as is from policy_reservations where master_wallet_id = ${master.id} and operation <> 'gas'`,
      )
    const sent = await sentBy(master, failing(refund))
    await later(sent, 71)
    expect([await stage.get(sent), await eventsOf(sent)]).toMatchObject([stillOpen, []])
    stage.clock.forward(2 * hourMs)
    await untilOverdue(sent)
    const [overdue] = await stage.eventsOf(sent.body.id)
    expect(overdue?.payload).toMatchObject({
      walletId: master.id,
      route: 'partner-bridge',
      amount: '50',
      token: 'USDC',
      chain: 'base',
      txHash: sent.body.txHash,
      failingSince: expect.any(String),
    })
    expect(await stage.get(sent)).toMatchObject(stillOpen)
    expect(lineOf('the refund of a transfer is overdue', sent)).toContain('"level":50')
    await later(sent, 24 * 40)
    expect(await eventsOf(sent), 'once').toEqual(['transfer.refund_overdue'])
    expect(await isReleased(), 'the money is away').toEqual([{ is: false }])

    const refundTxHash = await payBack(master)
    says(refundedBy(refundTxHash))
    const end = { status: 'failed', reason: 'refunded', refundTxHash, refundedAt: expect.any(String) }
    expect(await until(sent, 'status', isEnd, hourMs)).toMatchObject(end)
    const [, back, ...rest] = await stage.eventsOf(sent.body.id)
    expect(back).toMatchObject({ type: 'transfer.refunded', payload: { amount: '50', refundTxHash } })
    expect(rest).toMatchObject([{ type: 'transfer.failed', payload: { reason: 'refunded', refundTxHash } }])
    expect(await isReleased()).toEqual([{ is: true }])
    expect(await auditedActions(stage.world.database.db, sent.body.id)).toEqual([
      'transfers.create api-key',
      'transfers.refund-overdue system',
      'transfers.failed system',
    ])
  },
)

test('a refund in time is the end, and is not reported as overdue', async () => {
  const master = await stage.aMaster()
  const sent = await sentBy(master, failing('pending'))
  await later(sent, 71)
  const refundTxHash = await payBack(master)
  says(refundedBy(refundTxHash))
  expect(await until(sent, 'status', isEnd, lookMsMax)).toMatchObject({ status: 'failed', refundTxHash })
  expect(await eventsOf(sent)).toEqual(['transfer.failed'])
})

test('a delivery after an overdue refund completes the transfer', async () => {
  const toAddress = stranger()
  const sent = await sentBy(await stage.aMaster(), failing('unknown'), { toAddress })
  stage.clock.forward(73 * hourMs)
  await untilOverdue(sent)
  const destinationTxHash = await fundToken(stage.ethereum, 'USDC', toAddress, 49_950_000n)
  says({ state: 'completed', partnerStatus: 'delivered', destinationTxHash })
  const arrived = { status: 'confirmed', destinationTxHash, refundedAt: null }
  expect(await until(sent, 'status', isEnd, hourMs)).toMatchObject(arrived)
  expect(await eventsOf(sent)).toEqual(['transfer.refund_overdue', 'transfer.completed'])
})

test('a partner that fails again after a retry does not restart the days of its refund', async () => {
  const sent = await sentBy(await stage.aMaster(), failing('unknown'))
  says({ state: 'pending', partnerStatus: 'tries again' })
  await later(sent, 73)
  expect(await eventsOf(sent)).toEqual([])
  says(failing('unknown'))
  await untilOverdue(sent)
})

/** A transfer whose partner reports this transaction as its refund; polled some times since. */
async function sentAndClaimed(master: Managed, claim: (sent: Answer) => Promise<Hex | undefined>): Promise<Answer> {
  const sent = await sentBy(master, failing('pending'))
  says(refundedBy(await claim(sent)))
  for (let look = 0; look < 3; look++) await later(sent, 1)
  return sent
}

test.each<[string, (master: Managed, sent: Answer) => Promise<Hex | undefined>]>([
  ['no transaction', async () => undefined],
  ['a transaction that no node has', async () => hash],
  ['the transaction that took the money', async (_, { body }) => String(body.txHash) as Hex],
  ['a payment to somebody else', () => payBack({ address: stranger() })],
  ['a payment of one unit', (master) => payBack(master, 1n)],
  ['a payment of nine tenths', (master) => payBack(master, 45_000_000n)],
  [
    'a transfer of another wallet of the organisation',
    async ({ address: toAddress }) => {
      stage.conduct = {}
      const body = bridgeOf(await stage.aMaster(), { toChain: 'base', toAddress })
      const own = await stage.send(body)
      expect(own.body).toMatchObject({ status: 'confirmed', route: 'direct' })
      return String(own.body.txHash) as Hex
    },
  ],
  ['the settlement of a customer’s payment', ({ id }) => aSettledPayment(stage, stage.base, id)],
])('a partner that names %s as the refund has not refunded: the transfer waits for the money', async (_, claim) => {
  const master = await stage.aMaster()
  const sent = await sentAndClaimed(master, (one) => claim(master, one))
  expect([await stage.get(sent), await eventsOf(sent)]).toMatchObject([stillOpen, []])
  expect(lineOf('a partner reports a refund that is not on the chain', sent)).toContain('"level":40')
  const refundTxHash = await payBack(master)
  says(refundedBy(refundTxHash))
  expect(await until(sent, 'status', isEnd, hourMs)).toMatchObject({ status: 'failed', refundTxHash })
})

test('money from before the transfer is no refund of it, and a lying partner is reported as overdue', async () => {
  const master = await stage.aMaster(50_000_000n)
  const earlier = await payBack(master)
  const sent = await sentAndClaimed(master, async () => earlier)
  expect(await stage.get(sent)).toMatchObject(stillOpen)
  stage.clock.forward(73 * hourMs)
  await untilOverdue(sent)
})

test('one transaction refunds no more transfers than its money covers', async () => {
  const master = await stage.aMaster()
  const one = await sentBy(master, failing('pending'))
  const two = await sentBy(master, failing('pending'))
  const enoughForOne = await payBack(master, 50_000_000n)
  says(refundedBy(enoughForOne))
  const isFailed = async (sent: Answer) => (await stage.get(sent)).status === 'failed'
  const countFailed = async () => {
    stage.clock.forward(lookMsMax)
    return [await isFailed(one), await isFailed(two)].filter((is) => is).length
  }
  await expect.poll(countFailed, { interval: 500 }).toBe(1)
  const open = (await isFailed(one)) ? two : one
  for (let look = 0; look < 3; look++) await later(open, 1)
  expect(await countFailed()).toBe(1)
  says(refundedBy(await payBack(master)))
  await expect.poll(countFailed, { interval: 500 }).toBe(2)
})

test('the refund of one transfer is not taken for a smaller one of the wallet', async () => {
  const master = await stage.aMaster()
  const large = await sentBy(master, failing('pending'))
  const small = await stage.send(bridgeOf(master, { amount: '20' }))
  const refundTxHash = await payBack(master)
  says(refundedBy(refundTxHash))
  expect(await until(large, 'status', isEnd, lookMsMax)).toMatchObject({ status: 'failed', refundTxHash })
  for (let look = 0; look < 3; look++) await later(small, 1)
  expect(await stage.get(small)).toMatchObject(stillOpen)
  says(refundedBy(await payBack(master, 20_000_000n)))
  expect(await until(small, 'status', isEnd, lookMsMax)).toMatchObject({ status: 'failed', reason: 'refunded' })
})
