import { requireZeroFirst, sandboxBridgeAddress, sandboxPoolAddress, tokenBalance } from '@purser/devnet'
import {
  type Address,
  createPublicClient,
  createTestClient,
  encodeAbiParameters,
  type Hex,
  http,
  keccak256,
  numberToHex,
  parseAbi,
} from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, swapOf } from '../partner-stage.ts'
import { countAtNode } from '../transfer-stage.ts'
import { countByStatus } from '../world.ts'

const abi = parseAbi(['function allowance(address owner, address spender) view returns (uint256)'])

let stage: PartnerStage
let node: ReturnType<typeof nodeOf>

beforeAll(async () => {
  stage = await aPartnerStage()
  node = nodeOf()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())
afterEach(() => node.setAutomine(true))

function nodeOf() {
  return createTestClient({ mode: 'anvil', transport: http(stage.base.rpcUrl) })
}

function allowed({ address: owner }: Managed, spender: Address): Promise<bigint> {
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  const address = stage.base.tokens.USDC ?? '0x'
  return client.readContract({ address, abi, functionName: 'allowance', args: [owner, spender] })
}

/** Call data of the wallet's approvals in the order of sending. */
async function approvalsOf({ address }: Managed): Promise<string[]> {
  const rows = await stage.world.database.db.many(
    z.object({ data: z.instanceof(Uint8Array) }),
    sql`
    select c.data from chain_transactions c join transfer_steps s on s.transaction_id = c.id
    where c.sender = ${address} and s.kind = 'approve' order by c.nonce`,
  )
  return rows.map(({ data }) => `0x${Buffer.from(data).toString('hex')}`)
}

test('four swaps at once from one wallet all succeed, none wastes another’s gas, and no allowance remains', async () => {
  const master = await stage.aMaster()
  const bodies = ['10', '15', '20', '25'].map((amount) => swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount }))
  const sent = await Promise.all(bodies.map((body) => stage.send(body)))
  expect(countByStatus(sent)).toEqual({ 201: 4 })
  await Promise.all(sent.map(async (one) => expect(await stage.ended(one)).toMatchObject({ status: 'confirmed' })))
  const came = await Promise.all(bodies.map(({ toAddress }) => stage.coinOf(toAddress)))
  expect(came.every((wei) => wei > 0n)).toBe(true)
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(30_000_000n)
  expect([await allowed(master, sandboxPoolAddress), await stage.countOf(master)]).toEqual([0n, 8])
})

/** The number of the wallet's transactions that the node has. */
function broadcastBy({ address }: Managed): Promise<number> {
  return countAtNode(stage.world, stage.base, address)
}

test('a transfer whose quote expires while it waits for another gets a new quote, and spends no gas before', async () => {
  const master = await stage.aMaster()
  await node.setAutomine(false)
  const first = stage.send(bridgeOf(master, { amount: '40' }))
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(1)
  const second = stage.send(bridgeOf(master, { amount: '30' }))
  await node.mine({ blocks: 1 })
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(2)
  stage.clock.forward(90_000)
  expect((await approvalsOf(master)).length).toBe(1)
  await node.setAutomine(true)
  await node.mine({ blocks: 1 })
  const sent = await Promise.all([first, second])
  expect(countByStatus(sent)).toEqual({ 201: 2 })
  await expect.poll(() => broadcastBy(master), { timeout: 60_000 }).toBe(4)
  await expect.poll(() => allowed(master, sandboxBridgeAddress), { timeout: 60_000 }).toBe(0n)
  await stage.relayer.pass()
  for (const one of sent) expect(await stage.ended(one)).toMatchObject({ status: 'confirmed' })
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(30_000_000n)
})

/** Sets an existing allowance for the contract, wherever the token stores it. */
async function leaveAllowed(master: Managed, spender: Address): Promise<void> {
  const address = stage.base.tokens.USDC ?? '0x'
  const inner = (slot: bigint) =>
    keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [master.address, slot]))
  const at = (slot: bigint): Hex =>
    keccak256(encodeAbiParameters([{ type: 'address' }, { type: 'bytes32' }], [spender, inner(slot)]))
  for (let slot = 0n; slot < 20n; slot++) {
    await node.setStorageAt({ address, index: at(slot), value: numberToHex(7n, { size: 32 }) })
    await node.mine({ blocks: 1 })
    if ((await allowed(master, spender)) === 7n) return
    await node.setStorageAt({ address, index: at(slot), value: numberToHex(0n, { size: 32 }) })
  }
  throw new Error('the token stores allowances elsewhere')
}

test('an existing allowance is revoked first where the token refuses to overwrite it', async () => {
  const [usual, strict] = [await stage.aMaster(), await stage.aMaster()]
  for (const master of [usual, strict]) await leaveAllowed(master, sandboxPoolAddress)
  const swap = (master: Managed) => swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '10' })
  expect((await stage.send(swap(usual))).status).toBe(201)
  expect((await approvalsOf(usual)).length, 'a token that allows overwriting').toBe(1)

  await requireZeroFirst(stage.base)
  const sent = await stage.send(swap(strict))
  expect([sent.status, sent.body.type]).toEqual([201, undefined])
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  const approvals = await approvalsOf(strict)
  expect(approvals.map((data) => BigInt(`0x${data.slice(-64)}`))).toEqual([0n, 10_000_000n])
  expect(await allowed(strict, sandboxPoolAddress)).toBe(0n)
  expect(await tokenBalance(stage.base, 'USDC', strict.address)).toBe(90_000_000n)

  // A bridge revokes its own approval, and the next one needs no revocation before it.
  const bridged = await stage.send(bridgeOf(strict, { amount: '20' }))
  await stage.relayer.pass()
  expect(await stage.ended(bridged)).toMatchObject({ status: 'confirmed' })
  expect((await approvalsOf(strict)).length).toBe(3)
})
