import { type DevChain, fundNative, startChain, startFaultProxy } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  aStillClock,
  attemptsOf,
  effectsOf,
  laneMsMax,
  type Payment,
  passLane,
  planPayment,
  planWith,
  purpose,
  rpc,
  runLane,
  type Stage,
  type StageOptions,
  startLanes,
  statusOf,
  stepsOf,
  weiOf,
} from '../../../test/lane-stage.ts'
import { openDb, sql } from '../../platform/db/db.ts'
import { takeLeases } from '../../platform/leases/store.ts'
import { createLog } from '../../platform/log.ts'
import { createLanes, sharesOf } from './lanes.ts'

let database: TestDatabase
let dev: DevChain
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 20 })
  dev = await startChain({ network: 'base-sepolia' })
})
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
afterAll(async () => {
  await dev?.stop()
  await database?.drop()
})

test.each(['lose-answer', 'hang', 'drop', 'error500', 'garbage', 'wrong', 'rate-limit'] as const)(
  'a node whose answers to a sent transaction are "%s" neither loses nor doubles a payment',
  async (mode) => {
    const proxy = await startFaultProxy(dev.rpcUrl)
    cleanups.push(() => proxy.stop())
    const clock = aStillClock()
    const stage = await aStage({ rpcUrls: [proxy.url], clock })
    proxy.set(mode, ['eth_sendRawTransaction'])
    const payments = [await planPayment(stage), await planPayment(stage)]
    await passLane(stage.parts, stage.lane)
    expect(proxy.methods).toContain('eth_sendRawTransaction')
    proxy.set('pass')
    clock.forward(4_000)
    await runLane(stage)
    await expectPaidOnce(stage, payments)
    for (const { id } of payments) expect(await attemptsOf(database.db, id)).toHaveLength(1)
  },
)

test('a node that stops answering delays a lane and breaks nothing', async () => {
  const proxy = await startFaultProxy(dev.rpcUrl)
  cleanups.push(() => proxy.stop())
  const stage = await aStage({ rpcUrls: [proxy.url] })
  const payment = await planPayment(stage)
  for (const mode of ['drop', 'error500', 'wrong', 'garbage'] as const) {
    proxy.set(mode)
    await expect(passLane(stage.parts, stage.lane)).rejects.toMatchObject({ code: 'chain-unavailable' })
  }
  expect(await statusOf(database.db, payment.id)).toBe('planned')
  proxy.set('pass')
  await runLane(stage)
  await expectPaidOnce(stage, [payment])
})

test('on a chain with a block every two seconds, everything planned is mined and each handler is called once', async () => {
  const slow = await startChain({ network: 'eth-sepolia', blockTimeSeconds: 2 })
  cleanups.push(() => slow.stop())
  const stage = await aStage({ dev: slow })
  await startLanes(stage)
  cleanups.push(() => stage.lanes.stop())
  const payments: Payment[] = []
  for (let count = 0; count < 8; count++) payments.push(await planPayment(stage))
  stage.lanes.notify(stage.network)
  const counts = () => stage.lanes.openCounts(database.db, stage.network, stage.lane.sender)
  await expect.poll(counts, { timeout: laneMsMax }).toEqual({ batch: 0, single: 0 })
  await expect.poll(() => effectsOf(database.db, payments[7]?.id ?? 'ctx_')).toContain('final')
  await expectPaidOnce(stage, payments)
})

test('a payment whose block is reorganized away is sent again as the same bytes, and is final once', async () => {
  const own = await aSeparateChain()
  const stage = await aStage({ dev: own, confirmationDepth: 3 })
  const before = await rpc(stage.outbound, own.rpcUrl, 'evm_snapshot')
  const payment = await planPayment(stage)
  await runLane(stage, async () => (await statusOf(database.db, payment.id)) === 'mined')
  await rpc(stage.outbound, own.rpcUrl, 'evm_revert', [before])
  expect(await weiOf(stage, payment.to)).toBe(0n)

  await runLane(stage, async () => (await statusOf(database.db, payment.id)) === 'sent')
  await runLane(stage, async () => (await statusOf(database.db, payment.id)) === 'mined')
  expect(await effectsOf(database.db, payment.id)).not.toContain('final')
  await rpc(stage.outbound, own.rpcUrl, 'anvil_mine', ['0x2'])
  await runLane(stage)
  expect(await weiOf(stage, payment.to)).toBe(1n)
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
  expect((await effectsOf(database.db, payment.id)).filter((step) => step === 'final')).toHaveLength(1)
})

test('a payment to a contract that writes 30,000 logs ends, and so does the next one of its lane', async () => {
  const stage = await aStage()
  const contract: Address = '0x00000000000000000000000000000000001095ff'
  // Writes an empty log 30,000 times: a receipt of more than 8 MiB.
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setCode', [contract, '0x6175305b60006000a06001900380600357' + '00'])
  await stage.lanes.prepare(stage.network, stage.lane.sender)
  const long = await stage.db.tx(planWith(stage, contract, 13_900_000n))
  const next = await planPayment(stage)
  await runLane(stage)
  for (const id of [long, next.id]) expect(await effectsOf(database.db, id)).toContain('final')
})

test('a payment is not final before its block has the network’s confirmation depth', async () => {
  const own = await aSeparateChain()
  const stage = await aStage({ dev: own, confirmationDepth: 3 })
  const payment = await planPayment(stage)
  await runLane(stage, async () => (await statusOf(database.db, payment.id)) === 'mined')
  await rpc(stage.outbound, own.rpcUrl, 'anvil_mine', ['0x1'])
  await passLane(stage.parts, stage.lane)
  expect(await statusOf(database.db, payment.id)).toBe('mined')
  await rpc(stage.outbound, own.rpcUrl, 'anvil_mine', ['0x1'])
  await passLane(stage.parts, stage.lane)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'mined', 'final'])
})

test('a chain that lost final payments gets them again, before anything new and even when there is nothing new to send', async () => {
  const own = await aSeparateChain()
  const stage = await aStage({ dev: own })
  const before = await rpc(stage.outbound, own.rpcUrl, 'evm_snapshot')
  const old = [await planPayment(stage), await planPayment(stage)]
  await runLane(stage)
  await rpc(stage.outbound, own.rpcUrl, 'evm_revert', [before])
  expect(await weiOf(stage, old[0]?.to ?? '0x')).toBe(0n)

  await runLane(stage)
  await expect.poll(() => weiOf(stage, old[1]?.to ?? '0x')).toBe(1n)
  const fresh = await planPayment(stage)
  await runLane(stage)
  await expectPaidOnce(stage, [...old, fresh])
})

test('a payment that is not mined is replaced with an eighth more in fees, once per waiting period, and is paid once', async () => {
  const own = await aSeparateChain(3_600)
  const clock = aStillClock()
  const stage = await aStage({ dev: own, clock })
  const payment = await planPayment(stage)
  await passLane(stage.parts, stage.lane)
  clock.forward(5_000)
  await passLane(stage.parts, stage.lane)
  expect(await attemptsOf(database.db, payment.id), 'too early for a replacement').toHaveLength(1)
  clock.forward(20_000)
  await passLane(stage.parts, stage.lane)
  await passLane(stage.parts, stage.lane)
  const [first, second, third] = await attemptsOf(database.db, payment.id)
  expect(third).toBeUndefined()
  expect(BigInt(second?.maxFee ?? 0) * 8n).toBeGreaterThanOrEqual(BigInt(first?.maxFee ?? 1) * 9n)
  expect(BigInt(second?.priorityFee ?? 0) * 8n).toBeGreaterThanOrEqual(BigInt(first?.priorityFee ?? 1) * 9n)
  await rpc(stage.outbound, own.rpcUrl, 'evm_mine')
  await passLane(stage.parts, stage.lane)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'sent', 'mined', 'final'])
  expect(await weiOf(stage, payment.to)).toBe(1n)
})

test('when the base fee rises above a payment’s offer, the payment is replaced with a higher offer', async () => {
  const own = await aSeparateChain(3_600)
  const clock = aStillClock()
  const stage = await aStage({ dev: own, clock })
  const payment = await planPayment(stage)
  await passLane(stage.parts, stage.lane)
  const baseFee = 500n * 10n ** 9n
  await rpc(stage.outbound, own.rpcUrl, 'anvil_setNextBlockBaseFeePerGas', [`0x${baseFee.toString(16)}`])
  await rpc(stage.outbound, own.rpcUrl, 'evm_mine')
  expect(await weiOf(stage, payment.to)).toBe(0n)
  clock.forward(20_000)
  await passLane(stage.parts, stage.lane)
  expect(BigInt((await attemptsOf(database.db, payment.id)).at(-1)?.maxFee ?? 0)).toBeGreaterThan((baseFee * 7n) / 8n)
  await rpc(stage.outbound, own.rpcUrl, 'evm_mine')
  await passLane(stage.parts, stage.lane)
  expect(await weiOf(stage, payment.to)).toBe(1n)
  expect((await effectsOf(database.db, payment.id)).filter((step) => step === 'final')).toHaveLength(1)
})

test('a transaction whose nonce was used elsewhere is reported as replaced once, and only after the nonce was observed used for two minutes', async () => {
  const clock = aStillClock()
  const stage = await aStage({ clock })
  const payment = await planPayment(stage)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setNonce', [stage.signer.address, '0x1'])
  clock.forward(3_600_000)
  await passLane(stage.parts, stage.lane)
  clock.forward(100_000)
  await passLane(stage.parts, stage.lane)
  expect(await effectsOf(database.db, payment.id), 'a node may lag').toEqual(['sent'])
  clock.forward(30_000)
  await passLane(stage.parts, stage.lane)
  await passLane(stage.parts, stage.lane)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'replaced'])
  expect(await weiOf(stage, payment.to)).toBe(0n)
  const next = await planPayment(stage)
  await runLane(stage)
  await expectPaidOnce(stage, [next])
})

test('a payment whose nonce is used above the confirmation depth is not given up, and is paid once that block is reorganized away', async () => {
  const clock = aStillClock()
  const stage = await aStage({ clock, confirmationDepth: 3 })
  const payment = await planPayment(stage)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x3'])
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setNonce', [stage.signer.address, '0x1'])
  await passLane(stage.parts, stage.lane)
  for (let turn = 0; turn < 3; turn++) {
    clock.forward(200_000)
    await passLane(stage.parts, stage.lane)
  }
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent'])
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setNonce', [stage.signer.address, '0x0'])
  clock.forward(4_000)
  await runLane(stage, async () => (await statusOf(database.db, payment.id)) === 'mined')
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x2'])
  await runLane(stage)
  await expectPaidOnce(stage, [payment])
})

test('a relayer without gas keeps its payments, does not raise their fees meanwhile, and sends them once it has gas', async () => {
  const clock = aStillClock()
  const stage = await aStage({ clock, funded: false })
  const payment = await planPayment(stage)
  for (let turn = 0; turn < 6; turn++) {
    await passLane(stage.parts, stage.lane)
    clock.forward(30_000)
  }
  expect(await statusOf(database.db, payment.id)).toBe('sent')
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
  await fundNative(dev, stage.signer.address, 10n ** 20n)
  await runLane(stage)
  await expectPaidOnce(stage, [payment])
})

test('a handler that fails for one payment does not block the others, and is called again later', async () => {
  const stage = await aStage()
  const [bad, good] = [await planPayment(stage), await planPayment(stage)]
  let broken = true
  const handlers = new Map([
    [
      purpose,
      {
        ...stage.handler,
        onFinal: async (...[tx, mined]: Parameters<typeof stage.handler.onFinal>) => {
          await stage.handler.onFinal(tx, mined)
          if (broken && mined.some(({ transaction }) => transaction.id === bad.id)) throw new Error('no')
        },
      },
    ],
  ])
  const parts = { ...stage.parts, handlers }
  await runLane({ ...stage, parts }, async () => (await statusOf(database.db, good.id)) === 'final')
  expect(await effectsOf(database.db, bad.id)).not.toContain('final')
  broken = false
  await runLane({ ...stage, parts })
  await expectPaidOnce(stage, [bad, good])
})

test('a transaction without a handler in this process is not marked final', async () => {
  const stage = await aStage()
  const payment = await planPayment(stage)
  const parts = { ...stage.parts, handlers: new Map() }
  for (let turn = 0; turn < 5; turn++) await passLane(parts, stage.lane)
  expect(await statusOf(database.db, payment.id)).toBe('sent')
  await runLane(stage)
  await expectPaidOnce(stage, [payment], ['mined', 'final'])
})

test('two processes on one lane, one of which stops in the middle, pay everything once', async () => {
  const stage = await aStage()
  const other = openDb({ url: database.url, connectionsMax: 10, log: createLog({ level: 'silent' }) })
  const signerOf = async () => stage.signer
  const twin = createLanes({ deps: { ...stage.deps, db: other }, chains: stage.chains, signerOf })
  cleanups.push(() => other.close())
  await startLanes(stage)
  twin.start([stage.handler])
  cleanups.push(() => twin.stop())
  const payments = await Promise.all(Array.from({ length: 10 }, () => planPayment(stage)))
  stage.lanes.notify(stage.network)
  await expect.poll(() => effectsOf(database.db, payments[0]?.id ?? 'ctx_')).toContain('final')
  await stage.lanes.stop()
  payments.push(...(await Promise.all(Array.from({ length: 10 }, () => planPayment({ ...stage, lanes: twin })))))
  await expect.poll(() => allFinal(payments), { timeout: laneMsMax }).toBe(true)
  await expectPaidOnce(stage, payments)
})

test('two processes that both assume they own a lane pay everything once', async () => {
  const stage = await aStage()
  const payments = await Promise.all(Array.from({ length: 12 }, () => planPayment(stage)))
  const drive = async (): Promise<void> => {
    const end = performance.now() + laneMsMax
    while (performance.now() < end && !(await allFinal(payments)))
      await passLane(stage.parts, stage.lane).catch(() => undefined)
  }
  await Promise.all([drive(), drive()])
  await expectPaidOnce(stage, payments)
})

test('rolled-back plans leave no nonce gaps, and parallel plans never share a nonce', async () => {
  const stage = await aStage()
  await stage.lanes.prepare(stage.network, stage.lane.sender)
  await Promise.allSettled(
    Array.from({ length: 30 }, (_, index) =>
      database.db.tx(async (tx) => {
        await planWith(stage, `0x${'11'.repeat(19)}${(index + 16).toString(16)}`)(tx)
        if (index % 3 === 0) throw new Error('rolled back')
      }),
    ),
  )
  const rows = await database.db.many(
    z.object({ nonce: z.bigint() }),
    sql`select nonce from chain_transactions where sender = ${stage.signer.address} order by nonce`,
  )
  expect(rows.map(({ nonce }) => nonce)).toEqual(Array.from({ length: 20 }, (_, index) => BigInt(index)))
})

test('a stopped lane leaves nothing running', async () => {
  const stage = await aStage()
  await startLanes(stage)
  await planPayment(stage)
  await stage.lanes.stop()
  const payment = await planPayment(stage)
  stage.lanes.notify(stage.network)
  const shares = sharesOf(stage.network.name)
  expect(await takeLeases(database.db, shares, { ownerToken: 'next', leaseMs: 1 })).toHaveLength(shares.length)
  expect(await statusOf(database.db, payment.id)).toBe('planned')
})

async function aStage(options: Partial<StageOptions> = {}): Promise<Stage> {
  const stage = await aLane({ db: database.db, dev, ...options })
  cleanups.push(() => stage.outbound.close())
  cleanups.push(() => stage.lanes.stop())
  return stage
}

async function aSeparateChain(blockTimeSeconds?: number): Promise<DevChain> {
  const own = await startChain({
    network: 'base-sepolia',
    ...(blockTimeSeconds === undefined ? {} : { blockTimeSeconds }),
  })
  cleanups.push(() => own.stop())
  return own
}

async function allFinal(payments: readonly Payment[]): Promise<boolean> {
  const statuses = await Promise.all(payments.map(({ id }) => statusOf(database.db, id)))
  return statuses.every((status) => status === 'final')
}

/** Expects that each payment is paid once and that its handler was called once for each attempt, for its block and for its final outcome. */
async function expectPaidOnce(stage: Stage, payments: readonly Payment[], steps?: readonly string[]): Promise<void> {
  expect(await Promise.all(payments.map(({ to }) => weiOf(stage, to)))).toEqual(payments.map(() => 1n))
  const reported = payments.map(({ id }) => effectsOf(database.db, id))
  const due = payments.map(async ({ id }) => steps ?? stepsOf(await attemptsOf(database.db, id)))
  expect(await Promise.all(reported)).toEqual(await Promise.all(due))
}
