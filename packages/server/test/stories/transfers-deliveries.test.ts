import { fundNative, fundToken } from '@purser/devnet'
import type { Address, Hex } from '@purser/protocol'
import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
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

const unknownHash = `0x${'ef'.repeat(32)}` as const
/** The longest interval between two polls of a transfer. */
const lookMsMax = 60_000

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** The partner calls every transfer delivered, by this transaction. */
function saysDelivered(destinationTxHash?: Hex): void {
  const status: RouteStatus = {
    ...{ state: 'completed', partnerStatus: `by ${destinationTxHash ?? 'nothing'}` },
    ...(destinationTxHash === undefined ? {} : { destinationTxHash }),
  }
  stage.conduct = { status: async () => status }
}

const payOut = (to: Address, raw = 49_950_000n) => fundToken(stage.ethereum, 'USDC', to, raw)
const isEnded = async (sent: Answer) => (await stage.get(sent)).status === 'confirmed'

async function countEnded(sent: readonly Answer[]): Promise<number> {
  stage.clock.forward(lookMsMax)
  return (await Promise.all(sent.map(isEnded))).filter((is) => is).length
}

function countLines(words: string, { body }: Answer): number {
  return stage.lines.filter((line) => line.includes(words) && line.includes(String(body.id))).length
}

test('one delivery ends one transfer, however many the partner names it for', async () => {
  const master = await stage.aMaster()
  const toAddress = stranger()
  const sent = [await stage.send(bridgeOf(master, { toAddress })), await stage.send(bridgeOf(master, { toAddress }))]
  const first = await payOut(toAddress)
  saysDelivered(first)
  await expect.poll(() => countEnded(sent), { interval: 500 }).toBe(1)
  const [open] = (await isEnded(sent[0] as Answer)) ? sent.slice(1) : sent
  if (open === undefined) throw new Error('both have ended')
  const words = 'a partner returned the state of another transfer'
  await expect
    .poll(async () => [await countEnded(sent), countLines(words, open) > 2], { interval: 500 })
    .toEqual([1, true])
  expect(await stage.eventsOf(open.body.id)).toEqual([])
  saysDelivered(first.toUpperCase().replace('0X', '0x') as Hex)
  const before = countLines(words, open)
  await expect
    .poll(async () => [await countEnded(sent), countLines(words, open) > before + 1], { interval: 500 })
    .toEqual([1, true])
  const second = await payOut(toAddress)
  saysDelivered(second)
  await expect.poll(() => countEnded(sent), { interval: 500 }).toBe(2)
  expect(await stage.get(open)).toMatchObject({ destinationTxHash: second })
})

/** Waits until the delivery that the partner reports was compared with the chain twice, and the transfer has not ended. */
async function untilRefused(sent: Answer): Promise<void> {
  const words = 'a partner reports a delivery that is not on the chain'
  await expect
    .poll(async () => [await countEnded([sent]), countLines(words, sent) > 1], { interval: 500 })
    .toEqual([0, true])
}

/** Pays the recipient and lets the partner report it: the transfer ends. */
async function deliver(sent: Answer, toAddress: Address): Promise<void> {
  const destinationTxHash = await payOut(toAddress)
  saysDelivered(destinationTxHash)
  await expect.poll(() => countEnded([sent]), { interval: 500 }).toBe(1)
  expect(await stage.get(sent)).toMatchObject({ destinationTxHash })
}

test.each<[string, (to: Address) => Promise<Hex | undefined>]>([
  ['no transaction', async () => undefined],
  ['a transaction that no node has', async () => unknownHash],
  ['a payment to somebody else', () => payOut(stranger())],
  ['a payment of one unit', (to) => payOut(to, 1n)],
  ['a payment of nine tenths', (to) => payOut(to, 45_000_000n)],
])('a partner that names %s as the delivery has not delivered: the transfer waits for the money', async (_, claim) => {
  const toAddress = stranger()
  const sent = await stage.send(bridgeOf(await stage.aMaster(), { toAddress }))
  saysDelivered(await claim(toAddress))
  await untilRefused(sent)
  await deliver(sent, toAddress)
})

test('a transfer of another wallet of the service is no delivery of a partner', async () => {
  const toAddress = stranger()
  const { body } = await stage.world.call(stage.org.testKey, 'POST', masters, {
    chain: 'ethereum',
    supportedTokens: ['USDC'],
  })
  const other = { id: String(body.id), address: body.address as Address }
  await fundToken(stage.ethereum, 'USDC', other.address, 60_000_000n)
  await fundNative(stage.ethereum, other.address, 10n ** 18n)
  const direct = await stage.send({ ...bridgeOf(other), toChain: 'ethereum', toAddress })
  expect(direct.body).toMatchObject({ status: 'confirmed', route: 'direct' })
  const sent = await stage.send(bridgeOf(await stage.aMaster(), { toAddress }))
  saysDelivered(String(direct.body.txHash) as Hex)
  await untilRefused(sent)
})

test('the settlement of a customer’s payment is no delivery of a partner', async () => {
  const { id, address: toAddress } = await stage.world.wallet(stage.org, { chain: 'ethereum' })
  const sent = await stage.send(bridgeOf(await stage.aMaster(), { toAddress }))
  saysDelivered(await aSettledPayment(stage, stage.ethereum, id))
  await untilRefused(sent)
  await deliver(sent, toAddress)
})

const laterSeconds = 1_200

/** Time passes on both chains and in the service. */
async function passTime(): Promise<void> {
  stage.clock.forward(laterSeconds * 1_000)
  for (const { rpcUrl } of [stage.base, stage.ethereum]) {
    const node = createTestClient({ mode: 'anvil', transport: http(rpcUrl) })
    await node.increaseTime({ seconds: laterSeconds })
    await node.mine({ blocks: 1 })
  }
}

test('a payment of the right amount to the right account from long before a transfer left is not its delivery', async () => {
  const toAddress = stranger()
  const master = await stage.aMaster()
  const before = await payOut(toAddress)
  await passTime()
  const sent = await stage.send(bridgeOf(master, { toAddress }))
  saysDelivered(before)
  await untilRefused(sent)
  await deliver(sent, toAddress)
})

const dayMs = 24 * 3_600_000
const typesOf = async ({ body }: Answer) => (await stage.eventsOf(body.id)).map(({ type }) => type)

async function admin(...args: string[]): Promise<unknown> {
  const { stdout } = await runAdmin([...args, '--format', 'json'], { DATABASE_URL: stage.world.database.url })
  return JSON.parse(stdout)
}

/** Whether the transfer waits for the operator: in the list, whose length the metric of the alert has. */
async function unknownOf({ body }: Answer): Promise<Record<string, unknown>[]> {
  const listed = z.array(z.record(z.string(), z.unknown())).parse(await admin('unknown-transfers'))
  const text = await (await fetch(`${stage.world.base}/metrics`)).text()
  const depth = /^purser_queue_depth\{queue="unknown-transfers",network="base-sepolia"\} (\d+)/m.exec(text)?.[1]
  expect(Number(depth ?? 0)).toBe(listed.length)
  return listed.filter(({ transferId }) => transferId === body.id)
}

async function endBy(sent: Answer, ...finding: readonly string[]): Promise<unknown> {
  return admin('end-transfer', '--transfer', String(sent.body.id), ...finding)
}

/** Moves the clock until an event reports the delivery as overdue. */
async function untilOverdue(sent: Answer): Promise<void> {
  stage.clock.forward(dayMs)
  const reported = () => {
    stage.clock.forward(lookMsMax)
    return typesOf(sent)
  }
  await expect.poll(reported, { interval: 500 }).toEqual(['transfer.delivery_overdue'])
}

async function aLimitedMaster(): Promise<Managed> {
  const master = await stage.aMaster()
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '50' } } }
  const set = await stage.world.call(stage.org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)
  expect(set.status).toBe(200)
  return master
}

/** Whether the policy no longer counts the amount of the transfer. */
async function isReleased({ id }: Managed): Promise<boolean> {
  const row = await stage.world.database.db.one(
    z.object({ is: z.boolean() }),
    sql`select released_at is not null as is from policy_reservations where master_wallet_id = ${id} and operation <> 'gas'`,
  )
  return row.is
}

const isSilent = { status: () => Promise.reject(new Error('the partner is down')) }

test('a delivery that the chain never shows is reported once to its owner and waits for the operator, until the chain shows it', async () => {
  const toAddress = stranger()
  const sent = await stage.send(bridgeOf(await stage.aMaster(), { toAddress }))
  saysDelivered(unknownHash)
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe(`by ${unknownHash}: not on the chain`)
  stage.clock.forward(dayMs / 2)
  await expect.poll(() => countLines('not on the chain', sent), { interval: 500 }).toBeGreaterThan(1)
  expect([await typesOf(sent), await unknownOf(sent)]).toEqual([[], []])

  await untilOverdue(sent)
  const [overdue] = await stage.eventsOf(sent.body.id)
  const about = { amount: '50', token: 'USDC', chain: 'base', txHash: sent.body.txHash, leftAt: expect.any(String) }
  expect(overdue?.payload).toMatchObject(about)
  expect(await stage.get(sent)).toMatchObject({ status: 'pending', reason: null })
  expect(await unknownOf(sent)).toMatchObject([{ doubt: 'delivery', to: toAddress, txHash: sent.body.txHash }])
  expect(await auditedActions(stage.world.database.db, sent.body.id)).toContain('transfers.delivery-overdue system')
  const lines = countLines('not on the chain', sent)
  stage.clock.forward(40 * dayMs)
  const polled = () => {
    stage.clock.forward(lookMsMax)
    return countLines('not on the chain', sent)
  }
  await expect.poll(polled, { interval: 500 }).toBeGreaterThan(lines + 1)
  expect(await typesOf(sent), 'once').toEqual(['transfer.delivery_overdue'])

  const destinationTxHash = await payOut(toAddress)
  saysDelivered(destinationTxHash)
  await expect.poll(() => countEnded([sent]), { interval: 500 }).toBe(1)
  expect(await typesOf(sent)).toEqual(['transfer.delivery_overdue', 'transfer.completed'])
  expect(await unknownOf(sent)).toEqual([])
})

test.each([
  ['delivered-by', unknownHash, 'confirmed', { destinationTxHash: unknownHash, reason: null }, true],
  ['refunded-by', unknownHash, 'failed', { refundTxHash: unknownHash, reason: 'refunded' }, false],
  ['not-received', 'yes', 'failed', { refundTxHash: null, reason: 'not-received' }, true],
] as const)(
  'a transfer whose partner no longer answers ends with the operator’s finding %s, and not with one about its call',
  async (finding, value, status, shown, isStillCounted) => {
    const master = await aLimitedMaster()
    const sent = await stage.send(bridgeOf(master))
    stage.conduct = isSilent
    await untilOverdue(sent)
    expect(await endBy(sent, '--not-moved', 'yes')).toMatchObject({ isEnded: false })
    expect(await endBy(sent, '--moved-by', unknownHash)).toMatchObject({ isEnded: false })
    expect(await stage.get(sent)).toMatchObject({ status: 'pending' })
    expect(await endBy(sent, `--${finding}`, value)).toMatchObject({ isEnded: true })
    expect(await stage.get(sent)).toMatchObject({ status, ...shown })
    const end = status === 'confirmed' ? 'transfer.completed' : 'transfer.failed'
    // The operator's command reads the real time, not the test's.
    expect((await typesOf(sent)).toSorted()).toEqual([end, 'transfer.delivery_overdue'].toSorted())
    expect(await isReleased(master)).toBe(!isStillCounted)
    expect(await unknownOf(sent)).toEqual([])
  },
)
