import { randomBytes, randomUUID } from 'node:crypto'
import { type Address, checksumAddress, type Network, networkByName, tokenBySymbol } from '@purser/protocol'
import { z } from 'zod'
import type { BlockReads, ConfirmedReads } from '../../src/chain/blocks/port.ts'
import { createBlockReads } from '../../src/chain/blocks/reads.ts'
import { createQuorum } from '../../src/chain/rpc/quorum.ts'
import type { Rpc } from '../../src/chain/rpc/rpc.ts'
import { createTransferReads } from '../../src/chain/rpc/transfers.ts'
import { takeLease, type WatcherLease } from '../../src/features/wallets/deposits/cursor-store.ts'
import { createFollower } from '../../src/features/wallets/deposits/follow.ts'
import type { BalanceReads } from '../../src/features/wallets/deposits/opening.ts'
import { unwatchAddress, type WatchHead, watchAddress } from '../../src/features/wallets/deposits/watch.ts'
import { createWatched } from '../../src/features/wallets/deposits/watched.ts'
import type { Deps } from '../../src/modules.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { type Db, sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { createFakeScreening } from '../screening-double.ts'
import { toyDeps } from '../toy-deps.ts'
import { type FakeTransfer, nodesOf } from './fake-chain.ts'

const baseSepolia = networkNamed('base-sepolia')

function networkNamed(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`no network is called ${name}`)
  return network
}

export function anAddress(): Address {
  return checksumAddress(`0x${randomBytes(20).toString('hex')}`)
}

/** One of our networks with another confirmation depth for deposits. */
function withDepth(network: Network, depth: number): Network {
  return { ...network, depositFinality: { depth } }
}

const Shown = z.object({
  id: z.string(),
  walletId: z.string(),
  direction: z.string(),
  kind: z.string(),
  status: z.string(),
  rawAmount: z.string(),
  txHash: z.string(),
  logIndex: z.number(),
  blockNumber: z.bigint(),
  from: z.string(),
  chain: z.string(),
})

const DepositEvent = z.object({ walletId: z.string(), rawAmount: z.string(), txHash: z.string(), logIndex: z.number() })

/** A database and a tenant, and the watcher's parts without timers: a test runs each step. */
export async function aFollowStage(network: Network = withDepth(baseSepolia, 3)) {
  const database = await freshDatabase()
  const toys = toyDeps(database.db)
  const deps = { ...toys, screening: createFakeScreening(() => toys.clock.now()) }
  const tenant = await aTenant(deps, database, network.isTestnet ? 'test' : 'live')
  const chain = network.name === 'base-sepolia' ? ('base-sepolia' as const) : ('base' as const)
  return {
    database,
    deps,
    tenant,
    network,
    usdc: tokenBySymbol(network, 'USDC')?.address ?? network.tokens[0]?.address ?? anAddress(),
    /** Returns a wallet of the tenant that is watched from now on. */
    async wallet(
      options: {
        readonly prefix?: 'byw' | 'mwt' | 'cad'
        readonly address?: Address
        readonly tokens?: readonly string[]
        readonly network?: string
        readonly tenant?: Tenant
      } = {},
    ) {
      const { prefix = 'byw', address = anAddress(), tokens = network.tokens.map(({ symbol }) => symbol) } = options
      const walletId = newId(prefix, deps)
      const ctx = { ...deps, tenant: options.tenant ?? tenant }
      const watch = { walletId, address, chain, network: options.network ?? network.name, supportedTokens: tokens }
      await deps.db.tx((tx) => watchAddress(ctx, tx, watch))
      return {
        id: walletId,
        address,
        /** Deletes the wallet at this time, when a node reports this head. */
        unwatch: (head: WatchHead | undefined, at = deps.clock.now()) =>
          deps.db.tx((tx) => unwatchAddress({ ...ctx, clock: { now: () => at } }, tx, { walletId, head })),
      }
    },
    anotherTenant: () => aTenant(deps, database, tenant.environment),
    rows: () =>
      database.db.many(
        Shown,
        sql`select id, wallet_id, direction, kind, status, raw_amount, tx_hash, log_index, block_number, from_address as from, chain
          from wallet_transactions order by id`,
      ),
    async deposits() {
      const rows = await database.db.many(
        z.object({ payload: DepositEvent }),
        sql`select payload from events where type = 'deposit.success' order by id`,
      )
      return rows.map(({ payload }) => payload)
    },
    /** Returns a process's leading watcher of these nodes: each call runs one pass. */
    async follower(
      nodes: readonly Rpc[],
      own: {
        readonly db?: Db
        readonly nowMs?: () => number
        readonly wrap?: (reads: FollowReads) => FollowReads
        readonly stateAt?: BalanceReads['stateAt']
      } = {},
    ) {
      const lease = await lead(database.db, network)
      const all = nodesOf(nodes)
      const reads = {
        ...createBlockReads(eachInTurn(nodes), all),
        ...createTransferReads(network, createQuorum(network, all)),
      }
      const ownDeps = { ...deps, db: own.db ?? deps.db }
      return createFollower({
        deps: ownDeps,
        network,
        reads: own.wrap?.(reads) ?? reads,
        balances: { stateAt: own.stateAt ?? emptyAt(nodes) },
        watched: createWatched(ownDeps, tenant.environment),
        lease,
        stopped: new AbortController().signal,
        ...(own.nowMs === undefined ? {} : { nowMs: own.nowMs }),
      })
    },
    stop: () => database.drop(),
  }
}

export type FollowStage = Awaited<ReturnType<typeof aFollowStage>>

export type FollowReads = BlockReads & ConfirmedReads

/** Begins to read the network: one node is enough for that. */
export async function begin(stage: FollowStage, node: Rpc): Promise<void> {
  const follow = await stage.follower([node])
  await follow()
}

/** No account holds anything. */
function emptyAt(nodes: readonly Rpc[]): BalanceReads['stateAt'] {
  const { head } = createBlockReads(eachInTurn(nodes), nodesOf(nodes))
  return async (questions) => {
    const { number, hash, timestampSeconds } = await head()
    return { block: { number, hash, timestampSeconds }, newest: number, values: questions.map(() => 0n) }
  }
}

/** The first node that answers. */
function eachInTurn(nodes: readonly Rpc[]): Rpc {
  const first = async <T>(work: (node: Rpc) => Promise<T>): Promise<T> => {
    let last: unknown = new Error('no node')
    for (const node of nodes) {
      try {
        return await work(node)
      } catch (error) {
        last = error
      }
    }
    throw last
  }
  return {
    batch: (calls) => first((node) => node.batch(calls)),
    call: (method, params) => first((node) => node.call(method, params)),
    result: (method, params) => first((node) => node.result(method, params)),
    onOneNode: (work) => first((node) => node.onOneNode(work)),
  }
}

/** Takes the lease from the process that has it. */
async function lead(db: Db, network: Network): Promise<WatcherLease> {
  await db.run(sql`update deposit_cursors set lease_until = null where network = ${network.name}`)
  const lease = await takeLease(db, network.name, { name: randomUUID(), leaseMs: 60_000 })
  if (lease === undefined) throw new Error('the lead was not given')
  return lease
}

async function aTenant(
  deps: Pick<Deps, 'clock' | 'random'>,
  database: TestDatabase,
  environment: 'test' | 'live',
): Promise<Tenant> {
  const organisationId = newId('org', deps)
  await database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at) values (${organisationId}, 'Acme', 'team', 'enterprise', ${deps.clock.now()})`)
  return { organisationId, environment }
}

/** A transfer of this many of the token's smallest unit. */
export function transfer(token: Address, to: Address, rawAmount = 1_000_000n, from = anAddress()): FakeTransfer {
  return { token, from, to, rawAmount }
}
