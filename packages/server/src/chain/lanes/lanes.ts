import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { holdLeases, type Leases } from '../../platform/leases/leases.ts'
import { pause } from '../../platform/work/loop.ts'
import type { Chains, FeeSponsor } from '../port.ts'
import { NetworkDriver } from './driver.ts'
import { findNextNonce, insertLane } from './nonce-store.ts'
import { waitForWork } from './pace.ts'
import { type Planning, planAll, planOne } from './plan.ts'
import type { AccountPlan, LaneHandler, LaneSigner, Lanes } from './port.ts'
import { scopeOf, sharesOf } from './shards.ts'
import { countOpen, listOpenNetworks, markReopened } from './store.ts'

/** How often one statement looks for work in all lanes of this process that have nothing open: other processes plan too. */
const idlePollMs = 250
const failureMs = 500
const leaseMsDefault = 6_000
const openMaxDefault = 8

export interface LanesOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'witness'>
  readonly chains: Chains
  /** Who signs for an account; undefined where nobody here does. */
  readonly signerOf: (account: Address) => Promise<LaneSigner | undefined>
  /** Pays the fees of what is planned as sponsored (Tempo). */
  readonly sponsor?: FeeSponsor
  /** How long the lanes of a process that went away wait for another. */
  readonly leaseMs?: number | undefined
  readonly openMax?: number
}

/**
 * The lanes of all accounts on all configured networks, by one driver per network. The senders of a network are divided into shards; of all
 * processes that work, one at a time drives those of a shard, under a lease. All that it knows is in rows.
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

/** Wakes one loop. A notification that comes while the loop works is not lost: it does not wait then. */
class Wake {
  #next = Promise.withResolvers<void>()

  notify(): void {
    this.#next.resolve()
  }

  /** Resolves at the first notification after this call. */
  next(): Promise<void> {
    this.#next = Promise.withResolvers()
    return this.#next.promise
  }
}

/** What one process does for the lanes: leases shards, drives each network, and looks for work where nothing is open. */
class LaneWork {
  readonly #options: LanesOptions
  readonly #stopping = new AbortController()
  readonly #wakes: ReadonlyMap<string, Wake>
  /** Networks whose drivers wait for a notification. */
  readonly #idle = new Set<string>()
  readonly #leases: Leases
  readonly #loops: readonly Promise<void>[]

  constructor(options: LanesOptions, handlers: readonly LaneHandler[]) {
    const { deps, chains, leaseMs = leaseMsDefault } = options
    this.#options = options
    this.#wakes = new Map(chains.configured.map(({ name }) => [name, new Wake()]))
    const networkOf = new Map(chains.configured.map(({ name }) => [scopeOf(name), name]))
    const shares = chains.configured.flatMap(({ name }) => sharesOf(name))
    const onTaken = (scope: string): void => this.notify(networkOf.get(scope) ?? '')
    this.#leases = holdLeases({ deps, shares, leaseMs, onTaken })
    const byPurpose = new Map(handlers.map((handler) => [handler.purpose, handler]))
    const drives = chains.configured.map((network) =>
      this.#drive(network, new NetworkDriver({ ...options, network, handlers: byPurpose })),
    )
    this.#loops = [...drives, this.#poll()]
  }

  notify(network: string): void {
    this.#wakes.get(network)?.notify()
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#loops)
    await this.#leases.stop()
  }

  async #drive({ name }: Network, driver: NetworkDriver): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const woken = this.#wakes.get(name)?.next() ?? Promise.resolve()
      try {
        const nextMs = await driver.turn(this.#leases.held(scopeOf(name)))
        if (nextMs !== undefined) await waitForWork(woken, nextMs, signal)
        else await this.#untilNotified(name, woken)
      } catch (error) {
        this.#options.deps.log.warn(
          { err: error, network: name },
          'the lanes of a network failed; they are tried again',
        )
        await pause(failureMs, signal)
      }
    }
    await driver.rest()
  }

  async #untilNotified(network: string, woken: Promise<void>): Promise<void> {
    this.#idle.add(network)
    await waitForWork(woken, undefined, this.#stopping.signal)
    this.#idle.delete(network)
  }

  async #poll(): Promise<void> {
    const { deps } = this.#options
    while (!this.#stopping.signal.aborted) {
      await pause(idlePollMs, this.#stopping.signal)
      const leased = [...this.#idle].flatMap((network) =>
        this.#leases.held(scopeOf(network)).leases.map(({ shard }) => ({ network, shard })),
      )
      if (leased.length === 0) continue
      const open = await listOpenNetworks(deps.db, leased).catch((error: unknown) => {
        deps.log.warn({ err: error }, 'lanes could not be looked at; tried again')
        return []
      })
      for (const network of open) this.notify(network)
    }
  }
}
