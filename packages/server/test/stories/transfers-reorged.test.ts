import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createPublicClient, createTestClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { auditedActions, auditedOf } from '../audited.ts'
import { createFakeScreening } from '../screening-double.ts'
import { countAtNode, untilBooked } from '../transfer-stage.ts'
import { type Answer, aWorld, codeOf, type Org, request, type World } from '../world.ts'

// The live Base is final five blocks deep, so a reported block can still be undone.
const alwaysReverts = '0x60006000fd'
let base: DevChain
let world: World
let org: Org
let node: ReturnType<typeof nodeOf>

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  world = await aWorld({
    chains: [base],
    config: { transferWaitMs: 20_000 },
    boot: { screening: createFakeScreening(() => new Date()) },
  })
  org = await world.organisation()
  node = nodeOf(base)
})
afterEach(() => node.setAutomine(true))
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

function nodeOf({ rpcUrl }: DevChain) {
  return createTestClient({ mode: 'anvil', transport: http(rpcUrl) })
}

interface Paying {
  readonly body: Readonly<Record<string, string>>
  readonly to: Address
  /** On the chain where the wallet has gas and no token yet. */
  readonly unfunded: `0x${string}`
}

/** A wallet with 2.5 USDC and a request to send them all. */
async function aPaying(): Promise<Paying & { readonly address: Address }> {
  const path = '/wallet-infra/master-wallets'
  const { body } = await world.call(org.liveKey, 'POST', path, { chain: 'base', supportedTokens: ['USDC'] })
  const address = body.address as Address
  await fundNative(base, address, 10n ** 18n)
  const unfunded = await node.snapshot()
  await fundToken(base, 'USDC', address, 2_500_000n)
  await untilBooked(world, base)
  const to = privateKeyToAddress(generatePrivateKey())
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '2.5' }
  return { body: { fromWalletId: String(body.id), toAddress: to, ...usual }, to, unfunded, address }
}

function send({ body }: Paying, at = world.base): Promise<Answer> {
  return request(at, { key: org.liveKey, method: 'POST', path: '/wallet-infra/transfer', body })
}

async function statusOf(id: unknown): Promise<unknown> {
  return (await world.call(org.liveKey, 'GET', `/wallet-infra/transfers/${String(id)}`)).body.status
}

async function feeOf(id: unknown): Promise<bigint> {
  const { fee } = await world.database.db.one(
    z.object({ fee: z.coerce.bigint() }),
    sql`select sum(raw_fee)::text as fee from transfer_steps where transfer_id = ${String(id)}`,
  )
  return fee
}

async function eventsOf(id: unknown): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload ->> 'transactionId' = ${String(id)} order by id`,
  )
  return rows.map(({ type }) => type)
}

async function untilEnded(id: unknown): Promise<void> {
  const ended = async (): Promise<bigint> => {
    await node.mine({ blocks: 1 })
    const row = await world.database.db.one(
      z.object({ count: z.bigint() }),
      sql`select count(*) as count from transfers where id = ${String(id)} and ended_at is not null`,
    )
    return row.count
  }
  await expect.poll(ended, { timeout: 60_000, interval: 200 }).toBe(1n)
}

/** Waits until the node has received a transfer's transaction. */
async function untilSent(address: Address): Promise<void> {
  await expect.poll(() => countAtNode(world, base, address)).toBe(1)
}

test('a confirmed transfer whose block is undone is pending again, is sent again as the same bytes, and nothing is published twice', async () => {
  const paying = await aPaying()
  const before = await node.snapshot()
  const sent = await send(paying)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await feeOf(sent.body.id)).toBeGreaterThan(0n)
  await node.setAutomine(false)
  await node.revert({ id: before })
  await expect.poll(() => statusOf(sent.body.id)).toBe('pending')
  expect(await feeOf(sent.body.id), 'no block has its transaction').toBe(0n)
  expect(await tokenBalance(base, 'USDC', paying.to)).toBe(0n)
  await untilEnded(sent.body.id)
  const again = await world.call(org.liveKey, 'GET', `/wallet-infra/transfers/${sent.body.id}`)
  expect([again.body.status, again.body.txHash]).toEqual(['confirmed', sent.body.txHash])
  expect(await tokenBalance(base, 'USDC', paying.to)).toBe(2_500_000n)
  expect(await eventsOf(sent.body.id), 'it ended as its caller was informed').toEqual([])
  const [, end, ...more] = await auditedOf(world.database.db, sent.body.id)
  expect([end, more]).toEqual([
    {
      action: 'transfers.confirmed',
      actor: { kind: 'system' },
      details: { from: sent.body.fromWalletId, txHash: sent.body.txHash },
    },
    [],
  ])
})

test('a token that is paused between plan and block is 422 within the wait; a reorganization that then lets it through is published as an event', async () => {
  const paying = await aPaying()
  const before = await node.snapshot()
  await node.setAutomine(false)
  const answered = send(paying)
  await untilSent(paying.address)
  await node.setCode({ address: base.tokens.USDC ?? '0x', bytecode: alwaysReverts })
  const minedBy = async (): Promise<number> => {
    await node.mine({ blocks: 1 })
    return createPublicClient({ transport: http(base.rpcUrl) }).getTransactionCount({ address: paying.address })
  }
  await expect.poll(minedBy, { interval: 400 }).toBe(1)
  const refused = await answered
  expect([refused.status, codeOf(refused)]).toEqual([422, 'transfer-reverted'])
  const { transferId } = refused.body
  expect(await statusOf(transferId), 'the block may still be undone').toBe('pending')

  await node.revert({ id: before })
  await untilEnded(transferId)
  expect(await statusOf(transferId)).toBe('confirmed')
  expect(await eventsOf(transferId)).toEqual(['transfer.completed'])
  expect(await tokenBalance(base, 'USDC', paying.to)).toBe(2_500_000n)
})

test('a transfer that reverts after its answer was pending ends failed, and that is published once', async () => {
  const hasty = await world.another({ transferWaitMs: 0 })
  const paying = await aPaying()
  await node.setAutomine(false)
  const sent = await send(paying, hasty.base)
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  await untilSent(paying.address)
  await node.revert({ id: paying.unfunded })
  await untilEnded(sent.body.id)
  expect(await statusOf(sent.body.id)).toBe('failed')
  expect(await eventsOf(sent.body.id)).toEqual(['transfer.failed'])
  expect(await auditedActions(world.database.db, sent.body.id)).toEqual([
    'transfers.create api-key',
    'transfers.failed system',
  ])
  expect(await tokenBalance(base, 'USDC', paying.to)).toBe(0n)
})
