import { type DevChain, fundNative, startChain } from '@purser/devnet'
import { l1FeeOf } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  aStillClock,
  attemptsOf,
  passLane,
  planPayment,
  rpc,
  type Stage,
  statusOf,
} from '../../../test/lane-stage.ts'
import { type LyingNode, startLyingNode } from '../../../test/lying-node.ts'
import { resumeLanes } from './resume.ts'

// The precompile of Arbitrum is code that returns its first storage slot as the price of a byte.
const arbGasInfo = '0x000000000000000000000000000000000000006C'
const returnsSlotAsSecondWord = '0x5f5460205260c05ff3'
const executionGas = 30_000n
let database: TestDatabase
let dev: DevChain
let node: LyingNode

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 20 })
  dev = await startChain({ network: 'arbitrum' })
  node = await startLyingNode(dev.rpcUrl)
})
afterEach(() => node.tellTheTruth())
afterAll(async () => {
  await node?.stop()
  await dev?.stop()
  await database?.drop()
})

/** A sender without coin, on a chain whose price of a byte a test sets. */
async function aPoorSender() {
  const clock = aStillClock()
  const stage = await aLane({ db: database.db, dev, rpcUrls: [node.url], clock, funded: false })
  await rpc(stage.outbound, dev.rpcUrl, 'anvil_setCode', [arbGasInfo, returnsSlotAsSecondWord])
  return {
    stage,
    async setWeiPerByte(wei: bigint): Promise<void> {
      const word = `0x${wei.toString(16).padStart(64, '0')}`
      await rpc(stage.outbound, dev.rpcUrl, 'anvil_setStorageAt', [arbGasInfo, `0x${'0'.repeat(64)}`, word])
    },
    /** Turns of the lane, two minutes apart. */
    async runsFor(turns: number): Promise<void> {
      for (let turn = 0; turn < turns; turn++) {
        clock.forward(120_000)
        await passLane(stage.parts, stage.lane)
      }
    },
  }
}

/** The coin that a payment of 1 wei takes at the present prices. */
async function costNow({ parts }: Stage): Promise<bigint> {
  const { maxFee, dataGas } = await parts.chain.offeredFees()
  return 1n + (executionGas + l1FeeOf(dataGas, 0)) * maxFee
}

test('a payment that was signed while its bytes took more gas than its account can pay is sent when they take less', async () => {
  const { stage, setWeiPerByte, runsFor } = await aPoorSender()
  await setWeiPerByte(10n ** 10n)
  await fundNative(dev, stage.signer.address, await costNow(stage))
  await setWeiPerByte(10n ** 13n)
  const payment = await planPayment(stage)
  await resumeLanes(stage.parts, [stage.lane.sender])
  await runsFor(2)
  expect([await statusOf(database.db, payment.id), (await attemptsOf(database.db, payment.id)).length]).toEqual([
    'sent',
    1,
  ])
  await setWeiPerByte(10n ** 10n)
  await runsFor(3)
  expect([await statusOf(database.db, payment.id), (await attemptsOf(database.db, payment.id)).length]).toEqual([
    'final',
    2,
  ])
})

test('a payment that is refused for its gas is signed again only with more gas than before', async () => {
  const { stage, setWeiPerByte, runsFor } = await aPoorSender()
  await fundNative(dev, stage.signer.address, 10n ** 20n)
  await setWeiPerByte(10n ** 11n)
  node.lie('eth_sendRawTransaction', () => ({ error: { code: -32_000, message: 'intrinsic gas too low' } }))
  const payment = await planPayment(stage)
  await resumeLanes(stage.parts, [stage.lane.sender])
  await runsFor(2)
  await setWeiPerByte(10n ** 10n)
  await runsFor(2)
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(1)
  await setWeiPerByte(10n ** 12n)
  await runsFor(2)
  expect(await attemptsOf(database.db, payment.id)).toHaveLength(2)
  node.tellTheTruth()
  await runsFor(2)
  expect(await statusOf(database.db, payment.id)).toBe('final')
})
