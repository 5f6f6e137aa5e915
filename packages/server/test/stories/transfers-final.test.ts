import { fundToken, tokenBalance } from '@purser/devnet'
import { networkByName, requireNetwork } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { exceededByOpen } from '../../src/features/funds/index.ts'
import { deleteEnded } from '../../src/features/funds/store.ts'
import { sharersOf } from '../../src/features/plans/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import {
  aChild,
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
  patient,
  reservedBy,
  type TransferStage,
  transferOf,
  untilBooked,
} from '../transfer-stage.ts'

// Base counts a payment five blocks deep; its blocks are final when they are safe, here 32 deep.
const token = 10n ** 18n
const alwaysReverts = '0x60006000fd'
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ epochBlocks: 32 })
})
afterEach(async () => {
  stage.node.tellTheTruth()
  await stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

async function aLimitedMaster(): Promise<Managed> {
  const master = await aMaster(stage)
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '5' } } }
  await stage.world.call(stage.key, 'PUT', `/wallet-infra/master-wallets/${master.id}/policy`, policy)
  await stage.chain.setAutomine(false)
  return master
}

async function mineUntilConfirmed(id: string): Promise<void> {
  const isConfirmed = async (): Promise<boolean> => {
    await stage.chain.mine({ blocks: 1 })
    return (await transferOf(stage, id)).status === 'confirmed'
  }
  await expect.poll(isConfirmed, driving).toBe(true)
}

/** Mines to the payment depth and beyond, but not to the safe depth. */
async function mineToDepth(): Promise<void> {
  const before = stage.node.requested('eth_getBlockByNumber')
  await stage.chain.mine({ blocks: 10 })
  await expect.poll(() => stage.node.requested('eth_getBlockByNumber'), patient).toBeGreaterThan(before + 20)
}

test('a transfer at the payment depth is confirmed and open: its event comes once, when its block is safe', async () => {
  const master = await aLimitedMaster()
  const id = await begin(stage, bodyFrom(master))
  await mineUntilConfirmed(id)
  await mineToDepth()
  stage.clock.forward(5_000)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed' })
  expect([await hasEnded(stage, id), await eventsOf(stage, id)]).toEqual([false, []])
  await stage.chain.mine({ blocks: 40 })
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(5_000)
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed' })
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
})

test('a transfer whose block is undone beyond the payment depth is pending again without another transfer, and is sent again as the same bytes', async () => {
  const master = await aLimitedMaster()
  const before = await stage.chain.snapshot()
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await mineUntilConfirmed(id)
  await mineToDepth()
  const { txHash } = await transferOf(stage, id)
  await stage.chain.revert({ id: before })
  // Like a reorganization: another branch, at least as long.
  await stage.chain.mine({ blocks: 20 })
  const isPending = async (): Promise<unknown> => {
    stage.clock.forward(5_000)
    return (await transferOf(stage, id)).status
  }
  await expect.poll(isPending, driving).toBe('pending')
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(0n)
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([[], (5n * token) / 2n])
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 1 })
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed', txHash })
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('a transfer that reverted in a block that is undone beyond the payment depth is not failed: nothing is released, and it is sent', async () => {
  const master = await aLimitedMaster()
  const usdc = networkByName('base')?.tokens.find(({ symbol }) => symbol === 'USDC')?.address ?? '0x'
  const before = await stage.chain.snapshot()
  const body = bodyFrom(master)
  const id = await begin(stage, body)
  await stage.chain.setCode({ address: usdc, bytecode: alwaysReverts })
  const isReverted = async (): Promise<boolean> => {
    await stage.chain.mine({ blocks: 1 })
    const { txHash } = await transferOf(stage, id)
    if (typeof txHash !== 'string') return false
    const receipt = await stage.chain.getTransactionReceipt({ hash: txHash as `0x${string}` }).catch(() => undefined)
    return receipt?.status === 'reverted'
  }
  await expect.poll(isReverted, driving).toBe(true)
  await mineToDepth()
  stage.clock.forward(5_000)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'pending', reason: null })
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([[], (5n * token) / 2n])
  await stage.chain.revert({ id: before })
  await stage.chain.mine({ blocks: 20 })
  stage.clock.forward(5_000)
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 1 })
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed' })
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('no receipt is read of transfers whose blocks are not safe, however long that takes', async () => {
  const master = await aLimitedMaster()
  const id = await begin(stage, bodyFrom(master))
  await mineUntilConfirmed(id)
  await mineToDepth()
  const isAwaited = async (): Promise<boolean> => {
    const statement = sql`select finality_at is not null as is_awaited from transfers where id = ${id}`
    return (await stage.world.database.db.one(z.object({ isAwaited: z.boolean() }), statement)).isAwaited
  }
  await expect.poll(isAwaited, patient).toBe(true)
  const count = (): number => stage.node.requested('eth_getTransactionReceipt')
  const before = count()
  const safeReads = stage.node.requested('eth_getBlockByNumber')
  const isLookedAt = (): boolean => {
    stage.clock.forward(15_000)
    return stage.node.requested('eth_getBlockByNumber') > safeReads + 60
  }
  await expect.poll(isLookedAt, driving).toBe(true)
  expect(count() - before).toBe(0)
  await mineUntilFinal(id)
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
})

test('a transfer that reverted fails once its block is safe, and releases its reservation', async () => {
  const master = await aLimitedMaster()
  const usdc = networkByName('base')?.tokens.find(({ symbol }) => symbol === 'USDC')?.address ?? '0x'
  const code = await stage.chain.getCode({ address: usdc })
  const id = await begin(stage, bodyFrom(master))
  await stage.chain.setCode({ address: usdc, bytecode: alwaysReverts })
  const ended = await mineUntilEnded(stage, id)
  await stage.chain.setCode({ address: usdc, bytecode: code ?? '0x' })
  expect(ended).toMatchObject({ status: 'failed', reason: 'reverted' })
  expect([await eventsOf(stage, id), await reservedBy(stage, master)]).toEqual([['transfer.failed'], 0n])
})

/** The number of the transfer's reservations of which the time has passed, once its transaction counts as final for its lane. */
async function remainingReservations(id: string): Promise<number> {
  const { db } = stage.world.database
  const ofTransfer = sql`from reservations r join chain_transactions c on c.id = r.transaction_id where r.subject_id = ${id} and c.status = 'final'`
  await db.run(sql`
    update reservations set ended_block = 0, ended_at = now() - interval '1 day' where subject_id = ${id} and exists (select ${ofTransfer})`)
  await deleteEnded(db, { seconds: 600, most: 100 })
  return (await db.one(z.object({ count: z.bigint().transform(Number) }), sql`select count(*) ${ofTransfer}`)).count
}

test('the money of a transfer stays reserved until its block is final, since its bytes are sent again where the block is undone', async () => {
  const master = await aLimitedMaster()
  const id = await begin(stage, bodyFrom(master))
  await mineUntilConfirmed(id)
  await mineToDepth()
  await expect.poll(() => remainingReservations(id), patient).toBeGreaterThan(0)
  expect(await hasEnded(stage, id)).toBe(false)
  await mineUntilFinal(id)
  expect(await remainingReservations(id)).toBe(0)
})

/** A child with the amount of one transfer and no coin, of a master without coin: the settler sends for it. */
async function aChildWithoutGas(): Promise<Managed> {
  const child = await aChild(stage, await aMaster(stage, { wei: 0n, usdc: 0n }))
  await fundToken(stage.dev, 'USDC', child.address, 2_500_000n)
  await untilBooked(stage.world, stage.dev)
  await stage.chain.setAutomine(false)
  return child
}

async function untilStatus(id: string, status: string): Promise<void> {
  const statusNow = async (): Promise<unknown> => {
    stage.clock.forward(5_000)
    return (await transferOf(stage, id)).status
  }
  await expect.poll(statusNow, driving).toBe(status)
}

async function mineUntilFinal(id: string): Promise<void> {
  const ended = async (): Promise<boolean> => {
    stage.clock.forward(5_000)
    await stage.chain.mine({ blocks: 1 })
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
}

test('a gasless transfer ends by the same rule: open at the payment depth, and completed once when its block is safe', async () => {
  const child = await aChildWithoutGas()
  const body = bodyFrom(child)
  const id = await begin(stage, body)
  await mineUntilConfirmed(id)
  await mineToDepth()
  stage.clock.forward(5_000)
  await untilSettled(id)
  expect(await hasUnused(child), 'its signature is used').toBe(false)
  expect(await attemptsOf(stage, id), 'it has no transaction of its own').toEqual([])
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed' })
  expect([await hasEnded(stage, id), await eventsOf(stage, id)]).toEqual([false, []])
  await mineUntilFinal(id)
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('a gasless transfer whose block is undone beyond the payment depth is pending again, and its signature is sent again', async () => {
  const child = await aChildWithoutGas()
  const before = await stage.chain.snapshot()
  const body = bodyFrom(child)
  const id = await begin(stage, body)
  await mineUntilConfirmed(id)
  await mineToDepth()
  await untilSettled(id)
  expect(await hasUnused(child)).toBe(false)
  await stage.chain.revert({ id: before })
  await stage.chain.mine({ blocks: 20 })
  await untilStatus(id, 'pending')
  expect(await hasUnused(child)).toBe(true)
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(0n)
  expect(await eventsOf(stage, id)).toEqual([])
  await mineUntilFinal(id)
  expect(await transferOf(stage, id)).toMatchObject({ status: 'confirmed' })
  expect(await eventsOf(stage, id)).toEqual(['transfer.completed'])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

/** Waits until the relayer has settled the transfer at the payment depth. */
async function untilSettled(id: string): Promise<void> {
  const state = async () => {
    const statement = sql`select state from relays where subject_id = ${id}`
    return (await stage.world.database.db.one(z.object({ state: z.string() }), statement)).state
  }
  await expect.poll(state, patient).toBe('settled')
}

/** Whether the wallet has a signature that may still be used. */
async function hasUnused({ address: owner }: Managed): Promise<boolean> {
  const own = { network: requireNetwork('base'), owner, signedBy: 'key_none', sharers: sharersOf(stage.org.id) }
  const most = { address: 0, caller: 5_000, organisation: 5_000 }
  return (await exceededByOpen(stage.world.database.db, own, most)) === 'address'
}
