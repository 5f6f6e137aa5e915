import { tokenBalance } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import {
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  eventsOf,
  hasEnded,
  type Managed,
  mineUntilEnded,
  patient,
  reservedBy,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'

// Base is final five blocks deep, so what used the nonce can still be undone.
const token = 10n ** 18n
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage()
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

/** A wallet that may send 3 USDC a day, on a chain that makes a block where a test says so. */
async function aLimitedMaster(): Promise<Managed> {
  const master = await aMaster(stage)
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '3' } } }
  await stage.world.call(stage.key, 'PUT', `/wallet-infra/master-wallets/${master.id}/policy`, policy)
  await stage.chain.setAutomine(false)
  return master
}

/** The node takes what is sent, says so, and never tells anybody. */
async function beginLost(body: unknown): Promise<string> {
  stage.node.lie('eth_sendRawTransaction', () => ({ result: `0x${'0'.repeat(64)}` }))
  const id = await begin(stage, body)
  await expect.poll(async () => (await attemptsOf(stage, id)).length, patient).toBe(1)
  return id
}

/** Somebody else who holds the wallet's key sends the coin away, at the wallet's next nonce. */
async function useNonceElsewhere({ address }: Managed): Promise<void> {
  await stage.chain.impersonateAccount({ address })
  await stage.chain.sendTransaction({ account: address, to: stranger(), value: 1n, chain: null, gas: 21_000n })
  await stage.chain.mine({ blocks: 1 })
}

/** Lets the time that a node may lag go by, and the lane look at it twice. */
async function lookMuchLater(): Promise<void> {
  for (let look = 0; look < 2; look++) {
    const before = stage.node.asked('eth_getTransactionCount')
    stage.clock.forward(130_000)
    await expect.poll(() => stage.node.asked('eth_getTransactionCount'), patient).toBeGreaterThan(before + 2)
  }
}

test('a transfer whose nonce another transaction used fails once that is final and not before, gives its reservation back, and the wallet goes on', async () => {
  const master = await aLimitedMaster()
  const lost = bodyFrom(master)
  const id = await beginLost(lost)
  const next = bodyFrom(master, { amount: '0.5' })
  const nextId = await begin(stage, next)
  await useNonceElsewhere(master)
  await lookMuchLater()
  await lookMuchLater()
  expect(await transferOf(stage, id)).toMatchObject({ status: 'pending', reason: null })
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([[], 3n * token])

  await stage.chain.mine({ blocks: 4 })
  stage.node.tellTheTruth()
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(130_000)
    return hasEnded(stage, id)
  }
  await expect.poll(ended, patient).toBe(true)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'failed', reason: 'nonce-used-elsewhere' })
  expect(await eventsOf(stage, id)).toEqual(['transfer.failed'])
  expect(await reservedBy(stage, master)).toBe(token / 2n)
  expect((await mineUntilEnded(stage, nextId)).status).toBe('confirmed')
  const again = bodyFrom(master)
  expect((await mineUntilEnded(stage, await begin(stage, again))).status).toBe('confirmed')
  const to = [lost, next, again].map(({ toAddress }) => tokenBalance(stage.dev, 'USDC', toAddress))
  expect(await Promise.all(to)).toEqual([0n, 500_000n, 2_500_000n])
  expect(await eventsOf(stage, id)).toEqual(['transfer.failed'])
})

test('a transfer whose nonce a block used that is then undone is not failed: it goes, once', async () => {
  const master = await aLimitedMaster()
  const before = await stage.chain.snapshot()
  const body = bodyFrom(master)
  const id = await beginLost(body)
  await useNonceElsewhere(master)
  await lookMuchLater()
  await stage.chain.revert({ id: before })
  stage.node.tellTheTruth()
  stage.clock.forward(5_000)
  const ended = await mineUntilEnded(stage, id)
  expect([ended.status, await eventsOf(stage, id)]).toEqual(['confirmed', ['transfer.completed']])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
  expect(await reservedBy(stage, master)).toBe((5n * token) / 2n)
})

test('a node that counts a wallet’s transactions too high for a long time fails no transfer that a block then takes', async () => {
  const master = await aLimitedMaster()
  const body = bodyFrom(master)
  const id = await beginLost(body)
  stage.node.lie('eth_getTransactionCount', ({ params, truth }) =>
    params[1] === 'latest' ? { result: '0x7' } : truth(),
  )
  await lookMuchLater()
  await lookMuchLater()
  expect(await hasEnded(stage, id)).toBe(false)
  stage.node.tellTheTruth()
  stage.clock.forward(5_000)
  expect((await mineUntilEnded(stage, id)).status).toBe('confirmed')
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('a chain that goes back behind transfers that were final gets them again, each once, before what is new', async () => {
  const master = await aLimitedMaster()
  const before = await stage.chain.snapshot()
  const old = bodyFrom(master, { amount: '1' })
  const id = await begin(stage, old)
  const ended = await mineUntilEnded(stage, id)
  await stage.chain.revert({ id: before })
  expect(await tokenBalance(stage.dev, 'USDC', old.toAddress)).toBe(0n)
  const fresh = bodyFrom(master, { amount: '2' })
  const freshId = await begin(stage, fresh)
  expect((await mineUntilEnded(stage, freshId)).status).toBe('confirmed')
  const to = [old, fresh].map(({ toAddress }) => tokenBalance(stage.dev, 'USDC', toAddress))
  expect(await Promise.all(to)).toEqual([1_000_000n, 2_000_000n])
  const [first] = await attemptsOf(stage, id)
  const { status } = await stage.chain.getTransactionReceipt({ hash: first?.hash ?? '0x' })
  expect([status, first?.hash]).toEqual(['success', ended.txHash])
  expect([await eventsOf(stage, id), await eventsOf(stage, freshId)]).toEqual([
    ['transfer.completed'],
    ['transfer.completed'],
  ])
})
