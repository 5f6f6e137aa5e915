import { type DevChain, fundNative, fundToken, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { type Address, type Network, networkByName } from '@purser/protocol'
import { createTestClient, encodeFunctionData, http, parseAbi, publicActions } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import { resumeLanes } from '../../src/chain/lanes/resume.ts'
import type { LaneParts } from '../../src/chain/lanes/send.ts'
import {
  type AuthorizationPayload,
  authorizationOf,
  passRelays,
  relayHandler,
  relayPurpose,
} from '../../src/features/relayer/index.ts'
import { AuthorizationPayload as StoredPayload } from '../../src/features/relayer/port.ts'
import { finalizeTransfers } from '../../src/features/transfers/ending.ts'
import { signTransfers } from '../../src/features/transfers/gasless/relay.ts'
import { gasOfGasless } from '../../src/features/wallets/index.ts'
import type { Deps } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { auditedActions } from '../audited.ts'
import { aSigner, laneMemory, passLane, takeAllLeases } from '../lane-stage.ts'
import { lifeOf, mortalDeps } from '../mortal.ts'
import { relayPartsOf } from '../relay-stage.ts'
import { runOnce } from '../run-once.ts'
import { createFakeScreening } from '../screening-double.ts'
import { untilBooked } from '../transfer-stage.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { aWorld, type Org, type World } from '../world.ts'

/**
 * A process that only answers. A test starts the workers, and each dies where the test says. The live Base is final five
 * blocks deep, since this chain marks its blocks as safe before.
 */
let chain: DevChain
let world: World
let org: Org
let network: Network
let node: ReturnType<typeof nodeOf>
let worker: Awaited<ReturnType<typeof aWorker>>
const clock = new ShiftedClock()

beforeAll(async () => {
  chain = await startChain({ network: 'base' })
  node = nodeOf(chain)
  world = await aWorld({
    chains: [chain],
    config: { role: 'api', transferWaitMs: 0 },
    boot: { clock, screening: createFakeScreening(() => clock.now()) },
  })
  org = await world.organisation()
  const known = networkByName('base')
  if (known === undefined) throw new Error('no such network')
  network = known
  worker = await aWorker(world.server.deps)
})
afterEach(() => node.setAutomine(true))
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

function nodeOf({ rpcUrl }: DevChain) {
  return createTestClient({ mode: 'anvil', transport: http(rpcUrl) }).extend(publicActions)
}

async function aWorker(deps: Deps) {
  const signer = await aSigner()
  await fundNative(chain, signer.address, 10n ** 20n)
  const lanes = createLanes({ deps, chains: deps.chains, signerOf: async () => signer })
  const leased = await takeAllLeases(deps.db, network.name)
  const own = { ...deps, lanes, settlerAddress: signer.address }
  return { signer, leased, lane: { network: network.name, sender: signer.address }, deps: own }
}

type Worker = typeof worker

function partsOf({ deps, signer, leased }: Worker): LaneParts {
  const handlers = new Map([[relayPurpose, relayHandler(relayPartsOf(deps))]])
  return { deps, chain: deps.chains.on(network), signerOf: () => signer, handlers, leased, ...laneMemory(deps) }
}

/** One pass over all queues, as a worker's. */
async function turn(own: Worker, parts: LaneParts): Promise<void> {
  await signTransfers.run(systemCtx(own.deps))
  await passRelays(relayPartsOf(own.deps), network)
  await passLane(parts, own.lane)
  await runOnce(own.deps, finalizeTransfers)
}

/** Runs a process's work from its start until nothing is open, while blocks come. */
async function work(own: Worker, isDone: () => Promise<boolean> = noneOpen): Promise<void> {
  const parts = partsOf(own)
  await resumeLanes(parts, [own.lane.sender])
  for (let pass = 0; pass < 100; pass++) {
    await turn(own, parts)
    if (await isDone()) return
    await node.mine({ blocks: 1 })
    clock.forward(1_500)
  }
  throw new Error('the transfers did not end')
}

async function noneOpen(): Promise<boolean> {
  const statement = sql`select (select count(*) from transfers where ended_at is null)
    + (select count(*) from chain_transactions where status <> 'final') as count`
  return (await world.database.db.one(z.object({ count: z.bigint() }), statement)).count === 0n
}

interface Requested {
  readonly id: string
  readonly to: Address
  readonly child: Address
}

/** A transfer of the whole balance of a child without gas, not processed yet. */
async function aTransfer(): Promise<Requested> {
  const masters = '/wallet-infra/master-wallets'
  const master = await world.call(org.liveKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const { body } = await world.call(org.liveKey, 'POST', `${masters}/${master.body.id}/child-addresses`, {})
  await fundToken(chain, 'USDC', body.address as Address, 2_500_000n)
  await untilBooked(world, chain)
  const to = privateKeyToAddress(generatePrivateKey())
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '2.5' }
  const requested = { fromWalletId: body.id, toAddress: to, ...usual }
  const sent = await world.call(org.liveKey, 'POST', '/wallet-infra/transfer', requested)
  expect([sent.status, sent.body.status, sent.body.feeAmount]).toEqual([201, 'pending', '0'])
  return { id: String(sent.body.id), to, child: body.address as Address }
}

async function shown({ id: transferId }: Requested) {
  const { body } = await world.call(org.liveKey, 'GET', `/wallet-infra/transfers/${transferId}`)
  return { status: body.status, reason: body.reason, txHash: body.txHash }
}

async function eventsOf({ id: transferId }: Requested): Promise<string[]> {
  const statement = sql`select type from events where payload ->> 'transactionId' = ${transferId} order by id`
  return (await world.database.db.many(z.object({ type: z.string() }), statement)).map(({ type }) => type)
}

const usdc = (address: Address) => tokenBalance(chain, 'USDC', address)
const created = 'transfers.create api-key'

async function expectArrived(transfer: Requested): Promise<void> {
  expect((await shown(transfer)).status).toBe('confirmed')
  expect(await Promise.all([usdc(transfer.to), usdc(transfer.child)])).toEqual([2_500_000n, 0n])
  expect(await eventsOf(transfer)).toEqual(['transfer.completed'])
  expect(await auditedActions(world.database.db, transfer.id)).toEqual([created, 'transfers.confirmed system'])
}

async function rowOf(transfer: Requested) {
  const Row = z.object({ state: z.string(), attempts: z.number() })
  return world.database.db.one(
    Row,
    sql`select state, attempts from relays where purpose = 'transfers.gasless' and subject_id = ${transfer.id}`,
  )
}

/** Whether a transaction ended without it. */
async function isLeft(transfer: Requested): Promise<boolean> {
  const { state, attempts } = await rowOf(transfer)
  return state === 'waiting' && attempts > 0
}

/** Makes every waiting transfer due for a chain read, as when its time is over by the database's clock. */
async function readNow(): Promise<void> {
  await world.database.db.run(sql`update relays set check_at = now() where check_at is not null`)
}

/** A worker whose n-th step and every later one fail, as for a process that has died. */
function mortal(own: Worker, lifetime: number): { readonly worker: Worker; isDead(): boolean } {
  const life = lifeOf(lifetime)
  return { isDead: life.isDead, worker: { ...own, deps: mortalDeps(own.deps, network, life) } }
}

test('a process may die before or after any step, and the next one moves the money to its recipient exactly once', async () => {
  let deaths = 0
  for (let lifetime = 1; lifetime <= 200; lifetime++) {
    const transfer = await aTransfer()
    const { worker: dying, isDead } = mortal(worker, lifetime)
    await work(dying).catch((error: unknown) => {
      if (!isDead()) throw error
    })
    await work(worker)
    await expectArrived(transfer)
    if (!isDead()) break
    deaths += 1
  }
  expect(deaths).toBeGreaterThanOrEqual(10)
  expect(deaths).toBeLessThan(200)
}, 720_000)

test('it costs the organisation’s budget what its transaction cost, and needs no top-up', async () => {
  const taken = async () => {
    const statement = sql`select coalesce(sum(nano_usd), 0)::text as taken from gas_budgets where organisation_id = ${org.id}`
    return BigInt((await world.database.db.one(z.object({ taken: z.string() }), statement)).taken)
  }
  const before = await taken()
  const transfer = await aTransfer()
  expect((await taken()) - before, 'reserved').toBe(gasOfGasless)
  await work(worker)
  const hash = String((await shown(transfer)).txHash) as `0x${string}`
  const { gasUsed, effectiveGasPrice } = await node.getTransactionReceipt({ hash })
  expect((await taken()) - before).toBe(worker.deps.gasPrices.worthOf(network, gasUsed * effectiveGasPrice))
})

test('two workers at once send each transfer in one transaction', async () => {
  const transfers = await Promise.all(Array.from({ length: 6 }, () => aTransfer()))
  const other = await aWorker(world.server.deps)
  worker = { ...worker, leased: other.leased }
  await Promise.all([work(worker), work(other)])
  for (const transfer of transfers) {
    await expectArrived(transfer)
    expect((await rowOf(transfer)).attempts).toBe(1)
  }
}, 180_000)

/** Lets the children sign, and stops there. */
async function signed(transfer: Requested): Promise<AuthorizationPayload> {
  await signTransfers.run(systemCtx(worker.deps))
  const { payload } = await world.database.db.one(
    z.object({ payload: StoredPayload }),
    sql`select payload from relays where subject_id = ${transfer.id}`,
  )
  return payload
}

const token = parseAbi([
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  'function blacklist(address)',
  'function unBlacklist(address)',
])

/** What any observer of the authorization can do. */
function frontRun(payload: AuthorizationPayload): Promise<`0x${string}`> {
  const { from, to, value, validAfter, validBefore, nonce } = authorizationOf(payload)
  if (payload.signature.kind !== 'ecdsa') throw new Error('a child signs with its key')
  const { r, s, v } = payload.signature
  const signature = `${r}${s.slice(2)}${v.toString(16)}` as const
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
  const data = encodeFunctionData({ abi: token, functionName: 'transferWithAuthorization', args })
  return sendFromDevAccount(chain, payload.token, data)
}

test('another account that submits a child’s authorization first changes nothing: the money is at its recipient once, by their transaction', async () => {
  const transfer = await aTransfer()
  const hash = await frontRun(await signed(transfer))
  await work(worker)
  await expectArrived(transfer)
  expect((await shown(transfer)).txHash).toBe(hash)
})

async function listed(functionName: 'blacklist' | 'unBlacklist', address: Address): Promise<void> {
  await sendFromDevAccount(
    chain,
    chain.tokens.USDC ?? '0x',
    encodeFunctionData({ abi: token, functionName, args: [address] }),
  )
}

test('another account’s transaction is not reported until it is deep enough, and one that is undone is followed by our own', async () => {
  const transfer = await aTransfer()
  const row = await signed(transfer)
  await listed('blacklist', transfer.child)
  await work(worker, () => isLeft(transfer))
  await listed('unBlacklist', transfer.child)
  const before = await node.snapshot()
  const hash = await frontRun(row)
  clock.forward(60_000)
  await turn(worker, partsOf(worker))
  expect(await usdc(transfer.to)).toBe(2_500_000n)
  expect(await shown(transfer)).toEqual({ status: 'pending', reason: null, txHash: null })
  await node.revert({ id: before })
  expect(await usdc(transfer.to)).toBe(0n)
  await work(worker)
  await expectArrived(transfer)
  expect((await shown(transfer)).txHash).not.toBe(hash)
}, 90_000)

test('a transfer that the token refuses in its block is not reported as failed while its authorization is valid, and is sent when the token allows it', async () => {
  const transfer = await aTransfer()
  await signed(transfer)
  await listed('blacklist', transfer.child)
  await work(worker, () => isLeft(transfer))
  for (let look = 0; look < 20; look++) {
    clock.forward(10_000)
    await node.mine({ blocks: 1 })
    await turn(worker, partsOf(worker))
    expect(await shown(transfer)).toEqual({ status: 'pending', reason: null, txHash: null })
  }
  expect(await eventsOf(transfer)).toEqual([])
  const refused = await world.call(org.liveKey, 'POST', '/wallet-infra/transfer', {
    fromWalletId: (await walletOf(transfer)).walletId,
    ...{ toAddress: transfer.to, fromToken: 'USDC', toToken: 'USDC', toChain: 'base', amount: '0.000001' },
  })
  expect(refused.body.balances, 'it still has its money').toMatchObject([{ token: 'USDC', available: '0' }])
  await listed('unBlacklist', transfer.child)
  await work(worker)
  await expectArrived(transfer)
  expect((await rowOf(transfer)).attempts).toBe(2)
}, 180_000)

function walletOf(transfer: Requested) {
  return world.database.db.one(
    z.object({ walletId: z.string() }),
    sql`select wallet_id from transfers where id = ${transfer.id}`,
  )
}

const halfAnHourMs = 1_800_000

test('one that expires unused fails only when a final block is past its expiry, whatever our own clock reads, and its money is available again', async () => {
  const transfer = await aTransfer()
  await signed(transfer)
  await listed('blacklist', transfer.child)
  await work(worker, () => isLeft(transfer))
  clock.forward(halfAnHourMs * 2)
  for (let look = 0; look < 3; look++) {
    clock.forward(120_000)
    await readNow()
    await turn(worker, partsOf(worker))
    expect((await shown(transfer)).status, 'no block has reached its expiry').toBe('pending')
  }
  await node.increaseTime({ seconds: (halfAnHourMs * 3) / 1_000 })
  await node.mine({ blocks: network.confirmationDepth - 1 })
  clock.forward(120_000)
  await readNow()
  await turn(worker, partsOf(worker))
  expect((await shown(transfer)).status, 'the first block past its expiry is not final').toBe('pending')
  await node.mine({ blocks: 1 })
  await readNow()
  await work(worker)
  expect(await shown(transfer)).toEqual({ status: 'failed', reason: 'authorization-expired', txHash: null })
  expect(await eventsOf(transfer)).toEqual(['transfer.failed'])
  expect(await auditedActions(world.database.db, transfer.id)).toEqual([created, 'transfers.failed system'])
  expect(await Promise.all([usdc(transfer.to), usdc(transfer.child)])).toEqual([0n, 2_500_000n])
  const { walletId } = await walletOf(transfer)
  await listed('unBlacklist', transfer.child)
  const usual = { fromToken: 'USDC', toToken: 'USDC', toChain: 'base', amount: '2.5', toAddress: transfer.to }
  const again = await world.call(org.liveKey, 'POST', '/wallet-infra/transfer', { fromWalletId: walletId, ...usual })
  expect(again.status).toBe(201)
  await work(worker)
  expect(await usdc(transfer.to)).toBe(2_500_000n)
}, 180_000)

test('one that was never signed or sent before its expiry fails as soon as the chain is past it', async () => {
  const transfer = await aTransfer()
  await node.increaseTime({ seconds: (halfAnHourMs * 2) / 1_000 })
  clock.forward(halfAnHourMs * 2)
  await node.mine({ blocks: network.confirmationDepth })
  await work(worker)
  expect(await shown(transfer)).toMatchObject({ status: 'failed', reason: 'authorization-expired' })
  expect(await usdc(transfer.child)).toBe(2_500_000n)
})

test('a block that is undone makes it pending again, the same bytes are sent again, and its end is published once', async () => {
  const transfer = await aTransfer()
  const before = await node.snapshot()
  await work(worker, async () => (await shown(transfer)).status === 'confirmed')
  const { txHash } = await shown(transfer)
  await node.setAutomine(false)
  await node.revert({ id: before })
  await work(worker, async () => (await shown(transfer)).status === 'pending')
  expect(await usdc(transfer.to)).toBe(0n)
  await node.setAutomine(true)
  await work(worker)
  await expectArrived(transfer)
  expect((await shown(transfer)).txHash).toBe(txHash)
}, 90_000)

test('an undone block and then a faster submission by another account leave one transfer, with that account’s hash', async () => {
  const transfer = await aTransfer()
  const row = await signed(transfer)
  const before = await node.snapshot()
  await work(worker, async () => (await shown(transfer)).status === 'confirmed')
  await node.setAutomine(false)
  await node.revert({ id: before })
  await node.setAutomine(true)
  const hash = await frontRun(row)
  await work(worker)
  await expectArrived(transfer)
  expect((await shown(transfer)).txHash).toBe(hash)
}, 90_000)

test('each transfer in one transaction is decided separately', async () => {
  const refused = await aTransfer()
  const fine = await aTransfer()
  await listed('blacklist', refused.child)
  await work(worker, () => isLeft(refused))
  await work(worker, async () => (await eventsOf(fine)).length > 0)
  await expectArrived(fine)
  expect((await rowOf(fine)).state).toBe('settled')
  await listed('unBlacklist', refused.child)
  clock.forward(60_000)
  await work(worker)
  await expectArrived(refused)
}, 90_000)
