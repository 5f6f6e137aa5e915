import { type DevChain, fundNative, sendFromDevAccount, startChain, tokenBalance } from '@purser/devnet'
import { type Network, networkByName } from '@purser/protocol'
import { encodeFunctionData, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type LaneParts, passLane, resumeLane } from '../../src/chain/lane.ts'
import { createLanes } from '../../src/chain/lanes.ts'
import { authorizationOf } from '../../src/features/wallets/authorisation.ts'
import { passSweeps, sweepHandler, sweepPurpose } from '../../src/features/wallets/sweep/lane.ts'
import { TransferRow } from '../../src/features/wallets/sweep/lane-store.ts'
import { resolveSweeps } from '../../src/features/wallets/sweep/resolve.ts'
import type { Deps } from '../../src/platform/ctx.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aSigner } from '../lane-stage.ts'
import { Death, lifeOf, mortalDb } from '../mortal.ts'
import { aFamily, childrenOf, type Swept, sweep } from '../sweep-stage.ts'
import { aWorld, type Org, type World } from '../world.ts'

/** A process that only answers: what works is started by hand, and dies where it is told to. */
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
  return { signer, lane: { network: network.name, sender: signer.address }, deps }
}

type Worker = typeof worker

/** What a process does from its start until nothing of a sweep is under way. */
async function work({ deps, signer, lane }: Worker): Promise<void> {
  const lanes = createLanes({ deps, chains: deps.chains, signer })
  const parts: LaneParts = {
    deps,
    chain: deps.chains.on(network),
    signerOf: () => signer,
    handlers: new Map([[sweepPurpose, sweepHandler(deps)]]),
    usedSince: new Map(),
  }
  await resumeLane(parts, lane)
  for (let pass = 0; pass < 200; pass++) {
    await passSweeps(systemCtx(deps), lanes, network)
    const open = await passLane(parts, lane)
    await resolveSweeps.run(systemCtx(deps))
    if (open === 0 && (await countOpen(deps)) === 0n) return
  }
  throw new Error('the sweep did not come to rest')
}

async function countOpen(deps: Deps): Promise<bigint> {
  const statement = sql`select count(*) as count from sweep_transfers where status in ('planned', 'signed', 'sent')`
  return (await deps.db.one(z.object({ count: z.bigint() }), statement)).count
}

/** The same worker, at whose n-th step everything fails and goes on failing, as for a process that is gone. */
function mortal(own: Worker, lifetime: number): { readonly worker: Worker; isDead(): boolean } {
  const life = lifeOf(lifetime)
  const { around } = life
  const { db, chains, walletKeys } = own.deps
  const real = chains.on(network)
  const dying = {
    ...real,
    send: (raws: Parameters<typeof real.send>[0]) => around(() => real.send(raws)),
    watch: (...asked: Parameters<typeof real.watch>) => around(() => real.watch(...asked)),
    authorizationState: (...asked: Parameters<typeof real.authorizationState>) =>
      around(() => real.authorizationState(...asked)),
  }
  const deps: Deps = {
    ...own.deps,
    db: mortalDb(db, life),
    chains: { ...chains, on: () => dying },
    walletKeys: {
      ...walletKeys,
      signer(tenant, key) {
        const signer = walletKeys.signer(tenant, key)
        return {
          ...signer,
          signTransferWithAuthorization: (domain, authorization) =>
            around(() => signer.signTransferWithAuthorization(domain, authorization)),
        }
      },
    },
  }
  const signer = {
    ...own.signer,
    signTransaction: (fields: Parameters<typeof own.signer.signTransaction>[0]) =>
      around(() => own.signer.signTransaction(fields)),
  }
  return { isDead: life.isDead, worker: { ...own, deps, signer } }
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

test('a process may die before or after any step of a sweep, and the next one brings the money to the master exactly once', async () => {
  let deaths = 0
  for (let lifetime = 1; lifetime <= 200; lifetime++) {
    const family = await aFamily(world, org, chain, { count: 2 })
    const asked = await sweep(world, org, family)
    const died = await dieAt(lifetime)
    await work(worker)
    await expectSwept(family, asked.body.id, 1_000_000n)
    if (!died) break
    deaths += 1
  }
  expect(deaths).toBeGreaterThanOrEqual(25)
  expect(deaths).toBeLessThan(200)
}, 180_000)

test('a process dies in the middle of fifty children, and the next one finishes', async () => {
  for (const lifetime of [20, 60, 125]) {
    const family = await aFamily(world, org, chain, { count: 50, rawAmount: 2_000_000n })
    const asked = await sweep(world, org, family)
    expect(await dieAt(lifetime)).toBe(true)
    const again = await sweep(world, org, family)
    expect(again.body.childCount).toBe(0)
    await work(worker)
    await expectSwept(family, asked.body.id, 2_000_000n)
  }
}, 180_000)

test('two workers at once carry each child in one transaction', async () => {
  const family = await aFamily(world, org, chain, { count: 20 })
  const asked = await sweep(world, org, family)
  const other = await aWorker(world.server.deps)
  await Promise.all([work(worker), work(other)])
  const { status, children } = await childrenOf(world, org, family, asked.body.id)
  expect([status, children.map((child) => child.status)]).toEqual(['completed', family.children.map(() => 'swept')])
  expect(await usdc(family.address)).toBe(20_000_000n)
}, 60_000)

const token = parseAbi(['function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)'])
const signedColumns = sql`sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
  frozen_raw_amount, nonce, valid_before, signature, attempt, created_at`

test('a stranger who submits a child’s authorisation first changes nothing: its money is at the master, by his transaction', async () => {
  const family = await aFamily(world, org, chain, { count: 5 })
  const asked = await sweep(world, org, family)
  // Signed and not yet sent: the process ends as it reaches for the lane.
  const lanes = createLanes({ deps: worker.deps, chains: worker.deps.chains, signer: worker.signer })
  const noLane = { ...lanes, openCount: () => Promise.reject(new Death()) }
  await expect(passSweeps(systemCtx(worker.deps), noLane, network)).rejects.toThrow(Death)
  const [first] = await world.database.db.many(
    TransferRow,
    sql`select ${signedColumns} from sweep_transfers where sweep_id = ${String(asked.body.id)} order by from_address limit 1`,
  )
  if (first?.signature == null) throw new Error('nothing was signed')
  const { from, to, value, validAfter, validBefore, nonce } = authorizationOf(first)
  const signature = `0x${Buffer.from(first.signature).toString('hex')}` as const
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
  const data = encodeFunctionData({ abi: token, functionName: 'transferWithAuthorization', args })
  const hash = await sendFromDevAccount(chain, first.asset, data)

  await work(worker)
  const { status, children } = await childrenOf(world, org, family, asked.body.id)
  expect(status).toBe('completed')
  expect(children.map((child) => child.status)).toEqual(family.children.map(() => 'swept'))
  expect(children.find(({ childAddressId }) => childAddressId === first.childAddressId)?.txHash).toBe(hash)
  expect(new Set(children.map(({ txHash }) => txHash)).size).toBe(2)
  expect(await usdc(family.address)).toBe(5_000_000n)
})

test('a child that the token refuses fails by itself, says why, and its neighbours arrive', async () => {
  const family = await aFamily(world, org, chain, { count: 3 })
  const [listed] = family.children
  const asked = await sweep(world, org, family)
  const blacklist = parseAbi(['function blacklist(address)'])
  const args = [listed?.address ?? '0x'] as const
  await sendFromDevAccount(
    chain,
    chain.tokens.USDC ?? '0x',
    encodeFunctionData({ abi: blacklist, functionName: 'blacklist', args }),
  )
  await work(worker)
  const { status, children } = await childrenOf(world, org, family, asked.body.id)
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
  const asked = await sweep(world, org, family)
  const [frozen] = family.children
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, frozen_raw_amount, created_at)
    values ('wtx_frozen', ${org.id}, 'test', ${frozen?.id}, 'base-sepolia', 'base', '0xaa', 0, 'in', 'transfer', 'confirmed',
      ${chain.tokens.USDC}, 'USDC', 6, 1000000, '0xbb', ${frozen?.address}, 1, '0xcc', now(), 'flagged', 1000000, now())`)
  await work(worker)
  const { children } = await childrenOf(world, org, family, asked.body.id)
  expect(children.map((child) => [child.status, child.reason])).toEqual([
    ['failed', 'amount-frozen'],
    ['swept', null],
  ])
  expect(await usdc(frozen?.address ?? '0x')).toBe(1_000_000n)
})

test('an authorisation that lapses before it could be sent is over, and the money is swept by the next request', async () => {
  const family = await aFamily(world, org, chain, { count: 1 })
  const asked = await sweep(world, org, family)
  await world.database.db.run(
    sql`update sweep_transfers set valid_before = now() - interval '2 minutes' where sweep_id = ${String(asked.body.id)}`,
  )
  await work(worker)
  expect((await childrenOf(world, org, family, asked.body.id)).children).toMatchObject([
    { status: 'failed', reason: 'authorization-expired' },
  ])
  const next = await sweep(world, org, family)
  await work(worker)
  await expectSwept(family, next.body.id, 1_000_000n)
})

test('a transfer of which the node cannot tell keeps none behind it waiting', async () => {
  const family = await aFamily(world, org, chain, { count: 3 })
  const asked = await sweep(world, org, family)
  const [first] = family.children
  await world.database.db.run(
    sql`update sweep_transfers set valid_before = now() - interval '2 minutes' where sweep_id = ${String(asked.body.id)}`,
  )
  const { deps } = worker
  const real = deps.chains.on(network)
  const authorizationState: typeof real.authorizationState = (token, from, nonce) =>
    from === first?.address ? Promise.reject(new Error('too wide')) : real.authorizationState(token, from, nonce)
  const chains = { ...deps.chains, on: () => ({ ...real, authorizationState }) }
  await resolveSweeps.run(systemCtx({ ...deps, chains }))
  const states = async () => (await childrenOf(world, org, family, asked.body.id)).children.map(({ status }) => status)
  expect(await states()).toEqual(['pending', 'failed', 'failed'])
  await work(worker)
  expect(await states()).toEqual(['failed', 'failed', 'failed'])
})
