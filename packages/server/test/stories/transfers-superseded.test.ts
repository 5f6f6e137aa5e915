import { tokenBalance } from '@purser/devnet'
import { encodeTransfer, networkByName } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import {
  aMaster,
  aTransferStage,
  attemptsOf,
  begin,
  bodyFrom,
  driving,
  eventsOf,
  hasEnded,
  type Managed,
  mineUntilEnded,
  path,
  patient,
  reservedBy,
  stranger,
  type TransferStage,
  transferOf,
} from '../transfer-stage.ts'
import { codeOf } from '../world.ts'

// Base is final five blocks deep, so a transaction that used the nonce can still be undone.
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

/** The node accepts what is sent, reports success, and does not forward it. */
async function beginLost(body: unknown): Promise<string> {
  stage.node.lie('eth_sendRawTransaction', () => ({ result: `0x${'0'.repeat(64)}` }))
  const id = await begin(stage, body)
  await expect.poll(async () => (await attemptsOf(stage, id)).length, patient).toBe(1)
  return id
}

/** Another holder of the wallet's key sends the coin away, at the wallet's next nonce. */
async function useNonceElsewhere({ address }: Managed): Promise<void> {
  await stage.chain.impersonateAccount({ address })
  await stage.chain.sendTransaction({ account: address, to: stranger(), value: 1n, chain: null, gas: 21_000n })
  await stage.chain.mine({ blocks: 1 })
}

/** Passes the time that a node may lag, and lets the lane poll twice. */
async function lookMuchLater(): Promise<void> {
  for (let look = 0; look < 2; look++) {
    const before = stage.node.requested('eth_getTransactionCount')
    stage.clock.forward(130_000)
    await expect.poll(() => stage.node.requested('eth_getTransactionCount'), patient).toBeGreaterThan(before + 2)
  }
}

const Listed = z.array(z.record(z.string(), z.unknown()))

async function admin(...args: string[]): Promise<unknown> {
  const { stdout } = await runAdmin([...args, '--format', 'json'], { DATABASE_URL: stage.world.database.url })
  return JSON.parse(stdout)
}

async function unknownTransfers(): Promise<Record<string, unknown>[]> {
  return Listed.parse(await admin('unknown-transfers'))
}

test('a transfer does not fail merely because another transaction used its nonce: its caller sees pending, nothing is released, and the operator ends it', async () => {
  const master = await aLimitedMaster()
  const lost = bodyFrom(master)
  const id = await beginLost(lost)
  const next = bodyFrom(master, { amount: '0.5' })
  const nextId = await begin(stage, next)
  await useNonceElsewhere(master)
  await lookMuchLater()
  await lookMuchLater()
  expect(await unknownTransfers()).toEqual([])
  await stage.chain.mine({ blocks: 4 })
  stage.node.tellTheTruth()
  const isUnknown = async (): Promise<boolean> => {
    stage.clock.forward(130_000)
    return (await unknownTransfers()).length > 0
  }
  await expect.poll(isUnknown, driving).toBe(true)
  expect(await unknownTransfers()).toMatchObject([{ transferId: id, sender: master.address, amount: '2.5' }])
  expect(await transferOf(stage, id)).toMatchObject({ status: 'pending', reason: null })
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([[], 3n * token])
  expect((await mineUntilEnded(stage, nextId)).status).toBe('confirmed')
  const again = bodyFrom(master)
  const refused = await stage.world.call(stage.key, 'POST', path, again)
  expect([refused.status, codeOf(refused)]).toEqual([403, 'policy-denied'])

  const ended = await admin('end-transfer', '--transfer', id, '--not-moved', 'yes')
  expect(ended).toMatchObject({ transferId: id, isEnded: true })
  expect(await transferOf(stage, id)).toMatchObject({ status: 'failed', reason: 'nonce-used-elsewhere' })
  expect(await eventsOf(stage, id)).toEqual(['transfer.failed'])
  expect(await reservedBy(stage, master)).toBe(token / 2n)
  expect((await mineUntilEnded(stage, await begin(stage, again))).status).toBe('confirmed')
  const to = [lost, next, again].map(({ toAddress }) => tokenBalance(stage.dev, 'USDC', toAddress))
  expect(await Promise.all(to)).toEqual([0n, 500_000n, 2_500_000n])
  expect(await admin('end-transfer', '--transfer', id, '--not-moved', 'yes')).toMatchObject({ isEnded: false })
  expect(await eventsOf(stage, id)).toEqual(['transfer.failed'])
})

test('an operator who found the transaction that moved the money completes the transfer, and its reservation stays', async () => {
  const master = await aLimitedMaster()
  const id = await beginLost(bodyFrom(master))
  await useNonceElsewhere(master)
  await stage.chain.mine({ blocks: 5 })
  stage.node.tellTheTruth()
  await expect
    .poll(async () => {
      stage.clock.forward(130_000)
      return (await unknownTransfers()).length
    }, driving)
    .toBe(1)
  const hash = `0x${'5'.repeat(64)}`
  expect(await admin('end-transfer', '--transfer', id, '--moved-by', hash)).toMatchObject({ isEnded: true })
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed', txHash: hash })
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([
    ['transfer.completed'],
    (5n * token) / 2n,
  ])
})

/** What the database lost: the wallet's key signs the transfer's call again, in another form. */
async function sendCallElsewhere(
  { address }: Managed,
  body: { readonly toAddress: `0x${string}` },
): Promise<`0x${string}`> {
  await stage.chain.impersonateAccount({ address })
  const to = networkByName('base')?.tokens.find(({ symbol }) => symbol === 'USDC')?.address
  const data = encodeTransfer(body.toAddress, 2_500_000n)
  const sent = { account: address, to: to ?? '0x', data, chain: null, gas: 120_000n, maxFeePerGas: 9n * 10n ** 9n }
  const hash = await stage.chain.sendTransaction(sent)
  // The chain's time follows the test's clock: a transaction mined before a transfer was created is not the transfer's.
  const timestamp = BigInt(Math.ceil(stage.clock.now().getTime() / 1_000)) + 1n
  await stage.chain.setNextBlockTimestamp({ timestamp })
  await stage.chain.mine({ blocks: 1 })
  return hash
}

/** The node answers no queries about old state, like a pruning node. */
function forgetOldState(): void {
  stage.node.lie('eth_getTransactionCount', async ({ params, truth }) => {
    if (typeof params[1] !== 'string' || !params[1].startsWith('0x')) return truth()
    return { error: { code: -32_000, message: 'missing trie node' } }
  })
}

test.each([
  ['at its own nonce', async () => undefined],
  ['at its own nonce, by a node without old state', async () => forgetOldState()],
  ['at the next nonce', (master: Managed) => useNonceElsewhere(master)],
])(
  'a transfer that a lost transaction carried out %s is completed by it, and nothing is paid again',
  async (_, before) => {
    const master = await aLimitedMaster()
    const body = bodyFrom(master)
    const id = await beginLost(body)
    await before(master)
    const hash = await sendCallElsewhere(master, body)
    await stage.chain.mine({ blocks: 5 })
    const ended = async (): Promise<boolean> => {
      stage.clock.forward(130_000)
      await stage.chain.mine({ blocks: 1 })
      return hasEnded(stage, id)
    }
    await expect.poll(ended, driving).toBe(true)
    expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed', txHash: hash })
    expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([
      ['transfer.completed'],
      (5n * token) / 2n,
    ])
    expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
  },
)

test('a lost transaction that is older than the transfer did not carry it out', async () => {
  const master = await aLimitedMaster()
  await mineUntilEnded(stage, await begin(stage, bodyFrom(master, { amount: '0.5' })))
  const body = bodyFrom(master)
  await sendCallElsewhere(master, body)
  await stage.chain.mine({ blocks: 5 })
  stage.clock.forward(3_600_000)
  const id = await beginLost(body)
  await stage.chain.mine({ blocks: 5 })
  await expect
    .poll(async () => {
      stage.clock.forward(130_000)
      return (await unknownTransfers()).map(({ transferId }) => transferId)
    }, driving)
    .toEqual([id])
  await admin('end-transfer', '--transfer', id, '--not-moved', 'yes')
})

test('a transfer whose nonce a block used that is then undone is not failed: it is sent, once', async () => {
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

test('a node that reports too high a transaction count for a long time fails no transfer that a block then includes', async () => {
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

test('after a chain goes back behind final transfers they are sent again, each once, before anything new', async () => {
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
