import type { Address } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { keepLeases, type Leases } from '../../platform/leases/leases.ts'
import type { Share } from '../../platform/leases/store.ts'
import { startDueLoop } from '../../platform/work/due-work.ts'
import { type Loop, startLoop } from '../../platform/work/loop.ts'
import type { Chains, FeeSponsor } from '../port.ts'
import { NetworkDriver } from './driver.ts'
import type { AccountPlan, ChainTransactionId, LaneHandler, LaneSigner, Lanes, PlannedTransaction } from './port.ts'
import { markReopened } from './recovery-store.ts'
import {
  countOpen,
  findNextNonce,
  insertLane,
  insertTransactions,
  isAnyOpen,
  type LaneKey,
  listOpenNetworks,
  type NewTransaction,
  takeNonces,
} from './store.ts'

/** How often idle networks are compared with what is open, in one statement for all of them. Needed because other processes plan too. */
const idlePollMs = 250
const failureMs = 500
const leaseMsDefault = 6_000
const openMaxDefault = 8

export interface LanesOptions {
  readonly deps: Pick<Deps, 'db' | 'probe' | 'clock' | 'random' | 'log' | 'metrics' | 'witness'>
  readonly chains: Chains
  /** The account's signer; undefined when this process has none. */
  readonly signerOf: (account: Address) => Promise<LaneSigner | undefined>
  /** Pays the fees of sponsored transactions (Tempo). */
  readonly sponsor?: FeeSponsor
  /** Lease duration: how long the lanes of a crashed process wait for another. */
  readonly leaseMs?: number | undefined
  readonly openMax?: number
}

/**
 * The lanes of all accounts on all configured networks, with one driver per network. The senders of a network are divided into shards; one process
 * at a time drives a shard, under a lease. All state is in the database.
 */
export function createLanes(options: LanesOptions): Lanes {
  const { deps, chains } = options
  const prepared = new Set<string>()
  let work: LaneWork | undefined
  return {
    async prepare(network, account) {
      const lane = { network: network.name, sender: account }
      const name = `${network.name} ${account}`
      if (prepared.has(name)) return
      if ((await findNextNonce(deps.db, lane)) === undefined)
        await insertLane(deps.db, lane, await chains.on(network).firstNonce(account))
      prepared.add(name)
    },
    plan: (tx, account, planned) => planOne(deps, tx, planning({ account, planned })),
    planAll: (tx, wanted) => planAll(deps, tx, wanted.map(planning)),
    slots: { batch: (options.openMax ?? openMaxDefault) - 1, alone: 1 },
    openCounts: (db, network, account) => countOpen(db, { network: network.name, sender: account }),
    reopen: markReopened,
    notify: (network) => work?.notify(network.name),
    start(handlers) {
      work = new LaneWork(options, handlers)
    },
    stop: async () => work?.stop(),
  }
}

function planning({ account, planned }: AccountPlan): Planning {
  return { lane: { network: planned.network.name, sender: account }, planned }
}

/** The lane work of one process: leases shards, drives each network, and polls for work in idle networks. */
class LaneWork {
  readonly #deps: LanesOptions['deps']
  /** Idle networks, whose drivers wait for a notification. */
  readonly #idle = new Set<string>()
  readonly #leases: Leases
  readonly #drives: ReadonlyMap<string, Drive>
  readonly #poll: Loop

  constructor(options: LanesOptions, handlers: readonly LaneHandler[]) {
    const { deps, chains, leaseMs = leaseMsDefault } = options
    this.#deps = deps
    const networkOf = new Map(chains.configured.map(({ name }) => [scopeOf(name), name]))
    const shares = chains.configured.flatMap(({ name }) => sharesOf(name))
    const onTaken = (scope: string): void => this.notify(networkOf.get(scope) ?? '')
    this.#leases = keepLeases({ deps, shares, leaseMs, onTaken })
    const byPurpose = new Map(handlers.map((handler) => [handler.purpose, handler]))
    this.#drives = new Map(
      chains.configured.map((network) => {
        const driver = new NetworkDriver({ ...options, network, handlers: byPurpose })
        return [network.name, { driver, loop: this.#drive(network.name, driver) }]
      }),
    )
    const run = (): Promise<undefined> => this.#wakeBusyNetworks()
    const names = chains.configured.map(({ name }) => name)
    const { probe, log } = deps
    this.#poll = startDueLoop({ name: 'lanes', everyMs: idlePollMs, probe, isDue: () => isAnyOpen(names), log, run })
  }

  notify(network: string): void {
    this.#drives.get(network)?.loop.wake()
  }

  async stop(): Promise<void> {
    const drives = [...this.#drives.values()]
    await Promise.all([this.#poll.stop(), ...drives.map(({ loop }) => loop.stop())])
    await Promise.all(drives.map(({ driver }) => driver.waitUntilIdle()))
    await this.#leases.stop()
  }

  /** Drives a network while it has open transactions, and otherwise when notified. */
  #drive(name: string, driver: NetworkDriver): Loop {
    const run = async (): Promise<number> => {
      this.#idle.delete(name)
      const nextMs = await driver.turn(this.#leases.leasesOf(scopeOf(name)))
      if (nextMs === undefined) this.#idle.add(name)
      return nextMs ?? Number.POSITIVE_INFINITY
    }
    return startLoop({ name: scopeOf(name), everyMs: idlePollMs, failureMs, log: this.#deps.log, run })
  }

  async #wakeBusyNetworks(): Promise<undefined> {
    const leased = [...this.#idle].flatMap((network) =>
      this.#leases.leasesOf(scopeOf(network)).leases.map(({ shard }) => ({ network, shard })),
    )
    if (leased.length === 0) return
    for (const network of await listOpenNetworks(this.#deps.db, leased)) this.notify(network)
  }
}

interface Drive {
  readonly driver: NetworkDriver
  readonly loop: Loop
}

interface Planning {
  readonly lane: LaneKey
  readonly planned: PlannedTransaction
}

type PlanDeps = Pick<Deps, 'clock' | 'random' | 'witness'>

/**
 * Assigns nonces and stores the transactions in the caller's database transaction. Each lane sends its transactions in the given order. Throws
 * `service-unavailable` while the database is behind its witness or a lane was not compared with the chain since a restore.
 */
async function planAll(deps: PlanDeps, tx: Tx, wanted: readonly Planning[]): Promise<ChainTransactionId[]> {
  deps.witness.requireCurrent()
  const lanes = Map.groupBy(wanted, ({ lane }) => nameOf(lane))
  const counts = [...lanes.values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [{ lane: first.lane, count: rest.length + 1 }],
  )
  const taken = await takeNonces(tx, counts)
  const next = new Map(taken.map((lane) => [nameOf(lane), lane.firstNonce]))
  const createdAt = deps.clock.now()
  const made = wanted.map(({ lane, planned }): NewTransaction => {
    const nonce = next.get(nameOf(lane))
    if (nonce === undefined) throw new Error('the lane was not prepared')
    next.set(nameOf(lane), nonce + 1n)
    return { id: newId('ctx', deps), lane, nonce, createdAt, planned }
  })
  await insertTransactions(tx, made)
  return made.map(({ id }) => id)
}

/** Assigns one transaction its nonce and stores it in the caller's database transaction. */
async function planOne(deps: PlanDeps, tx: Tx, wanted: Planning): Promise<ChainTransactionId> {
  const [id] = await planAll(deps, tx, [wanted])
  if (id === undefined) throw new Error('a transaction was not planned')
  return id
}

function nameOf({ network, sender }: LaneKey): string {
  return `${network} ${sender}`
}

/** Shards per network. Fixed, so that the cost of leases does not grow with the number of senders. */
const shardCount = 8

/** The lease scope of a network's lanes. */
export function scopeOf(network: string): string {
  return `lanes/${network}`
}

export function sharesOf(network: string): Share[] {
  return Array.from({ length: shardCount }, (_, shard) => ({ scope: scopeOf(network), shard }))
}
