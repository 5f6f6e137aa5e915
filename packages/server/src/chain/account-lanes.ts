import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { newId } from '../platform/ids.ts'
import { pause } from '../platform/work/runner.ts'
import { type LaneParts, passLane, pollMsOf, resumeLane, waitForWork } from './lane.ts'
import { findNextNonce, insertLane, insertTransaction, listOpenSenders, takeNonce } from './lane-store.ts'
import type { AccountLanes, Chains, LaneHandler, LaneSigner } from './port.ts'

const idlePollMs = 250
const leaderRetryMs = 2_000
const failureMs = 500
/** Accounts whose lanes are passed over at once: each takes a few statements and two requests to the node. */
const passedAtOnce = 8

export interface AccountLanesOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'metrics'>
  readonly chains: Chains
  /** Whose lanes are driven elsewhere: the settler's. */
  readonly except: Address
  /** Who signs for an account; undefined where nobody here does. */
  readonly signerOf: (account: Address) => Promise<LaneSigner | undefined>
}

/**
 * The lanes of any number of accounts, driven as the settler's is: of all processes that work one at a time drives those of a
 * network, under a lock that dies with it, and everything that it knows is in rows. One account that cannot go on keeps no other.
 */
export function createAccountLanes(options: AccountLanesOptions): AccountLanes {
  const { deps, chains } = options
  const stopping = new AbortController()
  const wakers = new Map<string, PromiseWithResolvers<void>>()
  const prepared = new Set<string>()
  let loops: Promise<void>[] = []

  const nudge = (network: Network): void => {
    wakers.get(network.name)?.resolve()
    wakers.set(network.name, Promise.withResolvers())
  }
  const drive = async (driver: NetworkDriver, lost: AbortSignal): Promise<void> => {
    const { network } = driver
    while (!stopping.signal.aborted && !lost.aborted) {
      const waker = wakers.get(network.name)
      try {
        const open = await driver.pass()
        const ms = open > 0 ? pollMsOf(network) : idlePollMs
        await waitForWork(waker?.promise ?? Promise.resolve(), ms, stopping.signal)
      } catch (error) {
        deps.log.warn({ err: error, network: network.name }, 'the lanes of accounts could not go on; tried again')
        await pause(failureMs, stopping.signal)
      }
    }
  }
  const lead = async (network: Network, handlers: ReadonlyMap<string, LaneHandler>): Promise<void> => {
    while (!stopping.signal.aborted) {
      await deps.db
        .exclusively(`account-lanes:${network.name}`, (lost) =>
          drive(new NetworkDriver(options, network, handlers), lost),
        )
        .catch((error: unknown) => deps.log.warn({ err: error, network: network.name }, 'lanes lost their lock'))
      await pause(leaderRetryMs, stopping.signal)
    }
  }
  return {
    async prepare(network, account) {
      const lane = { network: network.name, sender: account }
      const name = `${network.name} ${account}`
      if (prepared.has(name)) return
      if ((await findNextNonce(deps.db, lane)) === undefined) {
        await insertLane(deps.db, lane, await chains.on(network).transactionCount(account, 'pending'))
      }
      prepared.add(name)
    },
    async plan(tx, account, planned) {
      const lane = { network: planned.network.name, sender: account }
      const made = { id: newId('ctx', deps), nonce: await takeNonce(tx, lane), createdAt: deps.clock.now() }
      await insertTransaction(tx, lane, made, planned)
      return made.id
    },
    nudge,
    start(handlers) {
      const byPurpose = new Map(handlers.map((handler) => [handler.purpose, handler]))
      for (const network of chains.configured) wakers.set(network.name, Promise.withResolvers())
      loops = chains.configured.map((network) => lead(network, byPurpose))
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

/** What one leadership of a network knows of its accounts: who signs, and whose lane it has taken up already. */
class NetworkDriver {
  readonly network: Network
  readonly #options: AccountLanesOptions
  readonly #handlers: ReadonlyMap<string, LaneHandler>
  readonly #parts = new Map<Address, LaneParts>()

  constructor(options: AccountLanesOptions, network: Network, handlers: ReadonlyMap<string, LaneHandler>) {
    this.#options = options
    this.network = network
    this.#handlers = handlers
  }

  /** One pass over every account that has something open; answers how many transactions are still open. */
  async pass(): Promise<number> {
    const { deps, except } = this.#options
    const waiting = await listOpenSenders(deps.db, this.network.name, except)
    this.#forgetAllBut(waiting)
    let open = 0
    const workers = Array.from({ length: Math.min(passedAtOnce, waiting.length) }, async () => {
      for (let account = waiting.pop(); account !== undefined; account = waiting.pop()) {
        open += await this.#passAccount(account)
      }
    })
    await Promise.all(workers)
    return open
  }

  async #passAccount(account: Address): Promise<number> {
    const lane = { network: this.network.name, sender: account }
    try {
      const parts = this.#parts.get(account) ?? (await this.#takeUp(account))
      return parts === undefined ? 0 : await passLane(parts, lane)
    } catch (error) {
      this.#options.deps.log.warn({ err: error, ...lane }, 'the lane of an account could not go on; tried again')
      return 1
    }
  }

  async #takeUp(account: Address): Promise<LaneParts | undefined> {
    const { deps, chains, signerOf } = this.#options
    const lane = { network: this.network.name, sender: account }
    const signer = await signerOf(account)
    if (signer === undefined) {
      deps.log.error(lane, 'nobody signs for an account that has transactions to send')
      return undefined
    }
    const chain = chains.on(this.network)
    const parts = { deps, chain, signer, handlers: this.#handlers, usedSince: new Map<string, number>() }
    await resumeLane(parts, lane)
    this.#parts.set(account, parts)
    return parts
  }

  /** An account at rest costs nothing; when it sends again, its lane is taken up anew. */
  #forgetAllBut(accounts: readonly Address[]): void {
    const kept = new Set(accounts)
    for (const account of this.#parts.keys()) if (!kept.has(account)) this.#parts.delete(account)
  }
}
