import { type DevChain, fundNative, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { encodeTransferWithAuthorization, type Network, networkByName } from '@purser/protocol'
import { encodeFunctionData, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createLanes } from '../../src/chain/lanes/lanes.ts'
import { resumeLanes } from '../../src/chain/lanes/resume.ts'
import type { LaneParts } from '../../src/chain/lanes/send.ts'
import type { Signer } from '../../src/chain/port.ts'
import {
  type AuthorizationPayload,
  authorizationOf,
  passRelays,
  relayHandler,
  relayPurpose,
} from '../../src/features/relayer/index.ts'
import { AuthorizationPayload as StoredPayload } from '../../src/features/relayer/port.ts'
import { signSweeps } from '../../src/features/wallets/sweep/relay.ts'
import type { Deps } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { storeFrozenPlace } from '../frozen-place.ts'
import { aSigner, laneMemory, passLane, takeAllLeases } from '../lane-stage.ts'
import { lifeOf, mortalDeps } from '../mortal.ts'
import { relayPartsOf } from '../relay-stage.ts'
import { aFamily, childrenOf, type Swept, sweep } from '../sweep-stage.ts'
import { aWorld, type Org, type World } from '../world.ts'

/** A process that only answers. A test starts the workers, and each dies where the test says. */
let chain: DevChain
let world: World
let org: Org
let network: Network
let worker: Awaited<ReturnType<typeof aWorker>>

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { role: 'api' } })
  org = await world.organisation()
  const known = networkByName('base-sepolia')
  if (known === undefined) throw new Error('no such network')
  network = known
  worker = await aWorker(world.server.deps)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const usdc = (address: `0x${string}`) => tokenBalance(chain, 'USDC', address)

async function aWorker(deps: Deps) {
  const signer = await aSigner()
  await fundNative(chain, signer.address, 10n ** 20n)
  const leased = await takeAllLeases(deps.db, network.name)
  return { signer, leased, lane: { network: network.name, sender: signer.address }, deps: withLanes(deps, signer) }
}

type Worker = typeof worker

/** Uses the lane of this signer for the relayer's. */
function withLanes(deps: Deps, signer: Signer): Deps {
  const lanes = createLanes({ deps, chains: deps.chains, signerOf: async () => signer })
  return { ...deps, lanes, settlerAddress: signer.address }
}

/** Runs a process's work from its start until nothing of a sweep is open. */
async function work({ deps, signer, lane, leased }: Worker): Promise<void> {
  const relaying = relayPartsOf(deps)
  const parts: LaneParts = {
    deps,
    chain: deps.chains.on(network),
    signerOf: () => signer,
    handlers: new Map([[relayPurpose, relayHandler(relaying)]]),
    leased,
    ...laneMemory(deps),
  }
  await resumeLanes(parts, [lane.sender])
  for (let pass = 0; pass < 200; pass++) {
    await signSweeps.run(systemCtx(deps))
    await passRelays(relaying, network)
    const open = await passLane(parts, lane)
    if (open === 0 && (await countOpen(deps)) === 0n) return
  }
  throw new Error('the sweep did not end')
}

async function countOpen(deps: Deps): Promise<bigint> {
  const statement = sql`select count(*) as count from sweep_transfers where status in ('planned', 'signed', 'sent')`
  return (await deps.db.one(z.object({ count: z.bigint() }), statement)).count
}

/** A worker whose n-th step and every later one fail, as for a process that has died. */
function mortal(own: Worker, lifetime: number): { readonly worker: Worker; isDead(): boolean } {
  const life = lifeOf(lifetime)
  const deps = mortalDeps(own.deps, network, life)
  const signer = {
    ...own.signer,
    signTransaction: (fields: Parameters<typeof own.signer.signTransaction>[0]) =>
      life.before(() => own.signer.signTransaction(fields)),
  }
  return { isDead: life.isDead, worker: { ...own, deps: withLanes(deps, signer), signer } }
}

async function dieAt(lifetime: number): Promise<boolean> {
  const { worker: dying, isDead } = mortal(worker, lifetime)
  await work(dying).catch((error: unknown) => {
    if (!isDead()) throw error
  })
  return isDead()
}

async function expectSwept(family: Swept, sweepId: unknown, each: bigint): Promise<void> {
  const { status, children } = await childrenOf(world, org, family, sweepId)
  expect([status, children.map((child) => child.status)]).toEqual(['completed', family.children.map(() => 'swept')])
  expect(await usdc(family.address)).toBe(each * BigInt(family.children.length))
  const audited = sql`select count(*) as count from audit_log where action = 'wallets.sweeps.swept' and target = ${String(sweepId)}`
  expect((await world.database.db.one(z.object({ count: z.bigint() }), audited)).count).toBe(1n)
}

test('a process may die before or after any step of a sweep, and the next one moves the money to the master exactly once', async () => {
  let deaths = 0
  for (let lifetime = 1; lifetime <= 200; lifetime++) {
    const family = await aFamily(world, org, chain, { count: 2 })
    const requested = await sweep(world, org, family)
    const died = await dieAt(lifetime)
    await work(worker)
    await expectSwept(family, requested.body.id, 1_000_000n)
    if (!died) break
    deaths += 1
  }
  expect(deaths).toBeGreaterThanOrEqual(13)
  expect(deaths).toBeLessThan(200)
}, 540_000)

test('a process dies in the middle of fifty children, and the next one finishes', async () => {
  for (const lifetime of [10, 30, 62]) {
    const family = await aFamily(world, org, chain, { count: 50, rawAmount: 2_000_000n })
    const requested = await sweep(world, org, family)
    expect(await dieAt(lifetime)).toBe(true)
    const again = await sweep(world, org, family)
    expect(again.body.childCount).toBe(0)
    await work(worker)
    await expectSwept(family, requested.body.id, 2_000_000n)
  }
}, 540_000)

test('two workers at once send each child in one transaction', async () => {
  const family = await aFamily(world, org, chain, { count: 20 })
  const requested = await sweep(world, org, family)
  const other = await aWorker(world.server.deps)
  worker = { ...worker, leased: other.leased }
  await Promise.all([work(worker), work(other)])
  const { status, children } = await childrenOf(world, org, family, requested.body.id)
  expect([status, children.map((child) => child.status)]).toEqual(['completed', family.children.map(() => 'swept')])
  expect(await usdc(family.address)).toBe(20_000_000n)
}, 180_000)

const PayloadRow = z.object({ subjectId: z.string(), payload: StoredPayload })

/** The signed authorizations of a sweep, before any of them is sent. */
async function signedFor(sweepId: string) {
  await signSweeps.run(systemCtx(worker.deps))
  return world.database.db.many(
    PayloadRow,
    sql`
    select subject_id, payload from relays where purpose = 'wallets.sweeps' and subject_id like ${`${sweepId} %`} order by subject_id`,
  )
}

/** Expires the signatures of a sweep in the service's database; the chain must be read to decide on them. */
async function expireInDatabase(sweepId: string): Promise<void> {
  await signedFor(sweepId)
  await world.database.db.run(sql`
    update relays set check_at = now(), valid_before = now() - interval '1 second' where subject_id like ${`${sweepId} %`}`)
}

function callDataOf(payload: AuthorizationPayload): `0x${string}` {
  return encodeTransferWithAuthorization(authorizationOf(payload), payload.signature)
}

test('another account that submits a child’s authorization first changes nothing: its money is at the master, by that transaction', async () => {
  const family = await aFamily(world, org, chain, { count: 5 })
  const requested = await sweep(world, org, family)
  const [first] = await signedFor(String(requested.body.id))
  if (first === undefined) throw new Error('nothing was signed')
  const hash = await sendFromDevAccount(chain, first.payload.token, callDataOf(first.payload))
  await work(worker)
  const { status, children } = await childrenOf(world, org, family, requested.body.id)
  expect(status).toBe('completed')
  expect(children.map((child) => child.status)).toEqual(family.children.map(() => 'swept'))
  expect(children.find(({ childAddressId }) => first.subjectId.endsWith(childAddressId))?.txHash).toBe(hash)
  expect(new Set(children.map(({ txHash }) => txHash)).size).toBe(2)
  expect(await usdc(family.address)).toBe(5_000_000n)
})

test('a child that the token refuses fails separately, with the reason, and the others arrive', async () => {
  const family = await aFamily(world, org, chain, { count: 3 })
  const [listed] = family.children
  const requested = await sweep(world, org, family)
  const blacklist = parseAbi(['function blacklist(address)'])
  const args = [listed?.address ?? '0x'] as const
  await sendFromDevAccount(
    chain,
    chain.tokens.USDC ?? '0x',
    encodeFunctionData({ abi: blacklist, functionName: 'blacklist', args }),
  )
  await work(worker)
  const { status, children } = await childrenOf(world, org, family, requested.body.id)
  expect(status).toBe('completed')
  expect(children.map((child) => [child.status, child.reason])).toEqual([
    ['failed', 'transfer-refused'],
    ['swept', null],
    ['swept', null],
  ])
  expect([await usdc(family.address), await usdc(listed?.address ?? '0x')]).toEqual([2_000_000n, 1_000_000n])
})

test('money that is frozen between the request and the sending stays', async () => {
  const family = await aFamily(world, org, chain, { count: 2 })
  const requested = await sweep(world, org, family)
  const [frozen] = family.children
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, frozen_raw_amount, created_at)
    values ('wtx_frozen', ${org.id}, 'test', ${frozen?.id}, 'base-sepolia', 'base', '0xaa', 0, 'in', 'transfer', 'confirmed',
      ${chain.tokens.USDC}, 'USDC', 6, 1000000, '0xbb', ${frozen?.address}, 1, '0xcc', now(), 'flagged', 1000000, now())`)
  await storeFrozenPlace(world.database.db, frozen?.id)
  await work(worker)
  const { children } = await childrenOf(world, org, family, requested.body.id)
  expect(children.map((child) => [child.status, child.reason])).toEqual([
    ['failed', 'amount-frozen'],
    ['swept', null],
  ])
  expect(await usdc(frozen?.address ?? '0x')).toBe(1_000_000n)
})

test('the service’s clock does not end a sweep: only the chain decides that a signature has expired', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  const requested = await sweep(world, org, family)
  await expireInDatabase(String(requested.body.id))
  const relaying = relayPartsOf(worker.deps)
  for (let look = 0; look < 5; look++) await passRelays(relaying, network)
  expect((await childrenOf(world, org, family, requested.body.id)).children).toMatchObject([{ status: 'pending' }])
  await sendFromDevAccount(chain, chain.tokens.USDC ?? '0x', callDataOf(await onlyPayload(String(requested.body.id))))
  await work(worker)
  await expectSwept(family, requested.body.id, 1_000_000n)
})

async function onlyPayload(sweepId: string): Promise<AuthorizationPayload> {
  const [only] = await signedFor(sweepId)
  if (only === undefined) throw new Error('nothing was signed')
  return only.payload
}

test('a transfer whose key fails is tried behind all others, and ends once it has expired unsigned', async () => {
  const family = await aFamily(world, org, chain, { count: 3 })
  const requested = await sweep(world, org, family)
  const [sick] = family.children
  const { walletKeys } = worker.deps
  const deps: Deps = {
    ...worker.deps,
    walletKeys: {
      ...walletKeys,
      signer(tenant, key) {
        if (key.address === sick?.address) throw new Error('no such key')
        return walletKeys.signer(tenant, key)
      },
    },
  }
  const states = async () =>
    (await childrenOf(world, org, family, requested.body.id)).children.map(({ status }) => status)
  await signSweeps.run(systemCtx(deps))
  await signSweeps.run(systemCtx(deps))
  expect(await states()).toEqual(['pending', 'pending', 'pending'])
  const open = sql`select status from sweep_transfers where sweep_id = ${String(requested.body.id)} order by status`
  expect(await world.database.db.many(z.object({ status: z.string() }), open)).toMatchObject([
    { status: 'planned' },
    { status: 'signed' },
    { status: 'signed' },
  ])
  await world.database.db.run(sql`
    update sweep_transfers set valid_before = now() - interval '1 second' where sweep_id = ${String(requested.body.id)} and status = 'planned'`)
  await signSweeps.run(systemCtx(deps))
  await work(worker)
  expect(await states()).toEqual(['failed', 'swept', 'swept'])
})

test('a sweep releases its reserved gas and is charged what it used', async () => {
  const taken = async () => {
    const statement = sql`select coalesce(sum(nano_usd), 0)::text as taken from gas_budgets where organisation_id = ${org.id}`
    return BigInt((await world.database.db.one(z.object({ taken: z.string() }), statement)).taken)
  }
  const before = await taken()
  const family = await aFamily(world, org, chain, { count: 2 })
  const requested = await sweep(world, org, family)
  const reserved = sql`select sum(gas_reserved_nano_usd)::text as reserved from sweep_transfers where sweep_id = ${String(requested.body.id)}`
  const Reserved = z.object({ reserved: z.string() })
  expect(await taken()).toBe(before + BigInt((await world.database.db.one(Reserved, reserved)).reserved))
  await work(worker)
  expect(await world.database.db.one(Reserved, reserved)).toEqual({ reserved: '0' })
  const [transaction] = (await childrenOf(world, org, family, requested.body.id)).children
  const receipt = await worker.deps.chains
    .on(network)
    .receipt(z.templateLiteral(['0x', z.string()]).parse(transaction?.txHash))
  const wei = (receipt?.gasUsed ?? 0n) * (receipt?.effectiveGasPrice ?? 0n) + (receipt?.l1Fee ?? 0n)
  const used = worker.deps.gasPrices.worthOf(network, wei)
  expect(used).toBeGreaterThan(0n)
  expect(Number((await taken()) - before - used)).toBeLessThanOrEqual(2)
  expect((await taken()) - before).toBeGreaterThan(0n)
})
