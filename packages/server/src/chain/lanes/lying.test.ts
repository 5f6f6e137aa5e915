import { type DevChain, startChain } from '@purser/devnet'
import { bytesToHex, l1FeeOf } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  aStillClock,
  attemptsOf,
  effectsOf,
  type Payment,
  passLane,
  planPayment,
  rpc,
  type Stage,
  type StageOptions,
  weiOf,
} from '../../../test/lane-stage.ts'
import { aKeptLog } from '../../../test/log-lines.ts'
import { type LyingNode, type NodeResponse, startLyingNode, withHighBaseFee } from '../../../test/lying-node.ts'
import { sql } from '../../platform/db/db.ts'
import { followLanes } from './follow.ts'
import { sendLanes } from './send.ts'

// The first of three nodes lies. It does not vote against the others where they compare receipts, so that nobody suspends it.
let database: TestDatabase
let dev: DevChain
let liar: LyingNode
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 20 })
  dev = await startChain({ network: 'base-sepolia' })
  liar = await startLyingNode(dev.rpcUrl)
})
afterEach(async () => {
  liar.tellTheTruth()
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
afterAll(async () => {
  await liar?.stop()
  await dev?.stop()
  await database?.drop()
})

async function aStage(
  clock: ReturnType<typeof aStillClock>,
  confirmationDepth = 1,
  own: Pick<StageOptions, 'rpcUrls' | 'log' | 'rpcTimeoutMs'> = {},
): Promise<Stage> {
  const rpcUrls = [liar.url, dev.rpcUrl, dev.rpcUrl]
  const stage = await aLane({ db: database.db, dev, clock, rpcUrls, confirmationDepth, ...own })
  cleanups.push(() => stage.outbound.close())
  return stage
}

const word = (digit: string): string => `0x${digit.repeat(64)}`

/** It shows a receipt for every transaction, in a block that it has not, or above its head. */
function showReceipts(blockNumber: string): void {
  liar.lie('eth_getTransactionReceipt', ({ params: [transactionHash] }) => ({
    result: {
      ...{ transactionHash, blockNumber, blockHash: word('7'), status: '0x1', gasUsed: '0x5208' },
      ...{ effectiveGasPrice: '0x3b9aca00', logs: [] },
    },
  }))
  liar.lie('eth_getBlockByNumber', ({ params: [block], truth }) => (block === 'latest' ? truth() : { result: null }))
}

async function look(stage: Stage, clock: ReturnType<typeof aStillClock>): Promise<void> {
  for (let looked = 0; looked < 8; looked += 1) {
    clock.forward(30_000)
    await passLane(stage.parts, stage.lane)
  }
}

/** Transactions stay out of blocks until the test mines one or ends. */
async function stopMining(stage: Stage): Promise<void> {
  await rpc(stage.outbound, dev.rpcUrl, 'evm_setAutomine', [false])
  cleanups.push(() => rpc(stage.outbound, dev.rpcUrl, 'evm_setAutomine', [true]))
}

/** A payment that was sent and that the nodes dropped. */
async function planDropped(stage: Stage): Promise<Payment> {
  await stopMining(stage)
  const payment = await planPayment(stage)
  await passLane(stage.parts, stage.lane)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_dropAllTransactions')
  return payment
}

const paid = (stage: Stage, { to }: Payment) => weiOf(stage, to)

/** Another sender of the account uses the nonce of its planned payment. */
const useNonce = (stage: Stage) => rpc(stage.outbound, dev.rpcUrl, 'anvil_setNonce', [stage.signer.address, '0x1'])

test.each(['0x1', '0xffffff'])(
  'a node that shows a receipt in block %s does not hide that the nonce was used elsewhere',
  async (blockNumber) => {
    const clock = aStillClock()
    const stage = await aStage(clock)
    const payment = await planPayment(stage)
    await useNonce(stage)
    showReceipts(blockNumber)
    await look(stage, clock)
    expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'replaced'])
  },
)

test('a node that does not end its search for a lost transaction delays no other one', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock, 1, { rpcTimeoutMs: 120_000 })
  const lost = await planPayment(stage)
  await useNonce(stage)
  const searching = Promise.withResolvers<void>()
  const stalled = Promise.withResolvers<NodeResponse>()
  liar.lie('eth_getLogs', () => {
    searching.resolve()
    return stalled.promise
  })
  const step = async () => {
    clock.forward(30_000)
    await sendLanes(stage.parts, [stage.lane.sender])
    await followLanes(stage.parts, [stage.lane.sender])
  }
  for (let steps = 0; steps < 8; steps += 1) await step()
  await searching.promise
  const other = await planPayment(stage)
  await step()
  expect(await effectsOf(database.db, other.id)).toEqual(['sent', 'mined', 'final'])
  expect(await effectsOf(database.db, lost.id)).toEqual(['sent'])
  stalled.resolve({ result: [] })
  await stage.parts.searches.settled()
  expect(await effectsOf(database.db, lost.id)).toEqual(['sent', 'replaced'])
})

test('a search for a lost transaction does not apply once blocks that it was begun for are undone', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock, 1, { rpcTimeoutMs: 120_000 })
  const send = (method: string, params: readonly unknown[] = []) => rpc(stage.outbound, dev.rpcUrl, method, params)
  await stopMining(stage)
  const payment = await planPayment(stage)
  await sendLanes(stage.parts, [stage.lane.sender])
  await send('anvil_dropAllTransactions')
  const before = await send('evm_snapshot')
  await useNonce(stage)
  await send('anvil_mine', ['0x1'])
  const searching = Promise.withResolvers<void>()
  const stalled = Promise.withResolvers<NodeResponse>()
  liar.lie('eth_getLogs', () => {
    searching.resolve()
    return stalled.promise
  })
  for (let steps = 0; steps < 8; steps += 1) {
    clock.forward(30_000)
    await followLanes(stage.parts, [stage.lane.sender])
  }
  await searching.promise
  await send('evm_revert', [before])
  await send('anvil_mine', ['0x4'])
  const search = stage.parts.searches.settled()
  stalled.resolve({ result: [] })
  await search
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent'])
  liar.tellTheTruth()
  await send('evm_setAutomine', [true])
  await look(stage, clock)
  expect(await paid(stage, payment)).toBe(1n)
  expect((await effectsOf(database.db, payment.id)).at(-1)).toBe('final')
})

test('a search for a transaction that is mined meanwhile ends, because its evidence is old', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock, 1, { rpcTimeoutMs: 600_000 })
  const send = (method: string, params: readonly unknown[] = []) => rpc(stage.outbound, dev.rpcUrl, method, params)
  await stopMining(stage)
  const payment = await planPayment(stage)
  await sendLanes(stage.parts, [stage.lane.sender])
  await send('anvil_dropAllTransactions')
  const { raw } = await database.db.one(
    z.object({ raw: z.instanceof(Uint8Array) }),
    sql`select raw from transaction_attempts where transaction_id = ${payment.id}`,
  )
  const before = await send('evm_snapshot')
  await useNonce(stage)
  await send('anvil_mine', ['0x1'])
  const searching = Promise.withResolvers<void>()
  liar.lie('eth_getLogs', () => {
    searching.resolve()
    return Promise.withResolvers<NodeResponse>().promise
  })
  const follow = async () => {
    clock.forward(30_000)
    await followLanes(stage.parts, [stage.lane.sender])
  }
  for (let steps = 0; steps < 8; steps += 1) await follow()
  await searching.promise
  await send('evm_revert', [before])
  await send('eth_sendRawTransaction', [bytesToHex(raw)])
  await send('anvil_mine', ['0x4'])
  await follow()
  // Its node does not answer: it ends because its transaction has another state.
  await stage.parts.searches.settled()
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'mined', 'final'])
})

test('a node that counts no transaction does not hide that the nonce was used elsewhere', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock)
  const payment = await planPayment(stage)
  await useNonce(stage)
  await passLane(stage.parts, stage.lane)
  liar.lie('eth_getTransactionCount', () => ({ result: '0x0' }))
  await look(stage, clock)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'replaced'])
})

test('a node that counts too many transactions does not give up a payment that is in a block afterwards', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock)
  await stopMining(stage)
  const payment = await planPayment(stage)
  liar.lie('eth_getTransactionCount', () => ({ result: '0x9' }))
  await look(stage, clock)
  expect((await effectsOf(database.db, payment.id)).filter((step) => step !== 'sent')).toEqual([])
  liar.tellTheTruth()
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x1'])
  await look(stage, clock)
  expect(await paid(stage, payment)).toBe(1n)
  expect((await effectsOf(database.db, payment.id)).at(-1)).toBe('final')
})

test('a payment whose block is undone, and whose nonce another transaction then uses, is reported as replaced', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock, 3)
  const before = await rpc(stage.outbound, dev.rpcUrl, 'evm_snapshot')
  const payment = await planPayment(stage)
  await look(stage, clock)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'mined'])
  await rpc(stage.outbound, dev.rpcUrl, 'evm_revert', [before])
  await useNonce(stage)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x4'])
  await look(stage, clock)
  await look(stage, clock)
  expect((await effectsOf(database.db, payment.id)).at(-1)).toBe('replaced')
})

test('a payment whose receipt no node delivers delays no other payment of its account, and ends once a node delivers it', async () => {
  const clock = aStillClock()
  const { lines, log } = aKeptLog()
  const stage = await aStage(clock, 1, { rpcUrls: [liar.url, liar.url, liar.url], log })
  let unread: unknown
  liar.lie('eth_getTransactionReceipt', ({ params: [hash], truth }) => {
    unread ??= hash
    return hash === unread ? { error: { code: -32_008, message: 'Response is too big' } } : truth()
  })
  const payments = [await planPayment(stage), await planPayment(stage)]
  await look(stage, clock)
  const stepsOf = () => Promise.all(payments.map(({ id }) => effectsOf(database.db, id)))
  expect((await stepsOf()).toSorted((one, other) => one.length - other.length)).toEqual([
    ['sent'],
    ['sent', 'mined', 'final'],
  ])
  const overdue = () => lines.filter((line) => line.includes('open for more than ten minutes'))
  expect(overdue()).toEqual([])
  clock.forward(600_000)
  await look(stage, clock)
  expect(overdue()).toEqual([expect.stringContaining(String(unread))])
  liar.tellTheTruth()
  clock.forward(600_000)
  await look(stage, clock)
  expect(await stepsOf()).toEqual(payments.map(() => ['sent', 'mined', 'final']))
})

test('a payment that the nodes dropped is sent again, although one shows a receipt for it', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock)
  const payment = await planDropped(stage)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x1'])
  expect(await paid(stage, payment)).toBe(0n)
  showReceipts('0x1')
  clock.forward(5_000)
  await passLane(stage.parts, stage.lane)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x1'])
  expect(await paid(stage, payment)).toBe(1n)
})

test.each(['0x1', '0xffffff'])(
  'a payment that is in a block ends although the first node shows it in block %s',
  async (blockNumber) => {
    const clock = aStillClock()
    const stage = await aStage(clock)
    showReceipts(blockNumber)
    const payment = await planPayment(stage)
    await look(stage, clock)
    expect(await paid(stage, payment)).toBe(1n)
    expect(await effectsOf(database.db, payment.id)).toEqual(['sent', 'mined', 'final'])
  },
)

test('a payment is final although the first node shows its block as the newest one after heads were compared', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock, 3)
  const payment = await planPayment(stage)
  await passLane(stage.parts, stage.lane)
  const old = await rpc(stage.outbound, dev.rpcUrl, 'eth_getBlockByNumber', ['latest', false])
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x4'])
  await stage.chains.check()
  liar.lie('eth_getBlockByNumber', ({ params: [block], truth }) => (block === 'latest' ? { result: old } : truth()))
  await look(stage, clock)
  expect((await effectsOf(database.db, payment.id)).at(-1)).toBe('final')
})

test('payments whose receipts a node does not have yet are compared with the quorum together', async () => {
  const stage = await aStage(aStillClock(), 1, { rpcUrls: [liar.url] })
  const payments = [await planPayment(stage), await planPayment(stage), await planPayment(stage)]
  liar.lie('eth_getTransactionReceipt', () => ({ result: null }))
  const before = liar.requested('eth_getTransactionCount')
  await passLane(stage.parts, stage.lane)
  // Once with the receipts of the pass, and once for all that it misses.
  expect(liar.requested('eth_getTransactionCount') - before).toBe(2)
  liar.tellTheTruth()
  await passLane(stage.parts, stage.lane)
  for (const payment of payments) expect(await paid(stage, payment)).toBe(1n)
})

test('a node that invents a small balance does not lower the fee of a payment', async () => {
  const clock = aStillClock()
  const other = await startLyingNode(dev.rpcUrl)
  cleanups.push(() => other.stop())
  const stage = await aStage(clock, 1, { rpcUrls: [liar.url, other.url, other.url] })
  const payment = await planPayment(stage)
  const { baseFee } = await stage.parts.chain.head()
  const small = (baseFee + 1n) * 30_000n + 1n
  for (const node of [liar, other])
    node.lie('eth_sendRawTransaction', () => ({
      error: { code: -32_000, message: 'insufficient funds for gas * price + value' },
    }))
  liar.lie('eth_call', async ({ params: [call], truth }) => {
    const reply = await truth()
    const isOfCoin = 'result' in reply && String(Object(call).data).includes('4d2301cc')
    return isOfCoin ? { result: `${String(reply.result).slice(0, -64)}${small.toString(16).padStart(64, '0')}` } : reply
  })
  await look(stage, clock)
  expect(await effectsOf(database.db, payment.id)).toEqual(['sent'])
})

test.each(['0x0', '0x9'])(
  'a first node that counts %s transactions neither keeps the fee of a waiting payment from rising nor has final ones sent again',
  async (count) => {
    const clock = aStillClock()
    const stage = await aStage(clock)
    const final = await planPayment(stage)
    await look(stage, clock)
    expect((await effectsOf(database.db, final.id)).at(-1)).toBe('final')
    const { raw } = await database.db.one(
      z.object({ raw: z.instanceof(Uint8Array) }),
      sql`select raw from transaction_attempts where transaction_id = ${final.id}`,
    )
    await stopMining(stage)
    const payment = await planPayment(stage)
    const sent: unknown[] = []
    liar.lie('eth_sendRawTransaction', ({ params, truth }) => {
      sent.push(params[0])
      return truth()
    })
    // It votes truthfully about the block that the majority names.
    liar.lie('eth_getTransactionCount', ({ params, truth }) => (params[1] === 'latest' ? { result: count } : truth()))
    await look(stage, clock)
    expect(sent).not.toContain(bytesToHex(raw))
    expect((await attemptsOf(database.db, payment.id)).length).toBeGreaterThan(1)
    liar.tellTheTruth()
    await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x1'])
    await look(stage, clock)
    expect(await paid(stage, payment)).toBe(1n)
  },
)

test('a first node that invents a high base fee does not keep the fee of a payment from being lowered to what its account can pay', async () => {
  const clock = aStillClock()
  const stage = await aStage(clock)
  const payment = await planDropped(stage)
  const { baseFee, l1Fee } = await stage.parts.chain.offeredFees()
  const left = ((baseFee * 5n) / 4n) * 30_000n + 1n + l1FeeOf(l1Fee, 256)
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setBalance', [stage.signer.address, `0x${left.toString(16)}`])
  liar.lie('eth_getBlockByNumber', withHighBaseFee)
  clock.forward(5_000)
  await passLane(stage.parts, stage.lane)
  const [first, second] = await attemptsOf(database.db, payment.id)
  expect(BigInt(second?.maxFee ?? 0)).toBeGreaterThan(0n)
  expect(BigInt(second?.maxFee ?? 0)).toBeLessThan(BigInt(first?.maxFee ?? 0))
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_mine', ['0x1'])
  expect(await paid(stage, payment)).toBe(1n)
})
