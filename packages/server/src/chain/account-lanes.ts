import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { pause } from '../platform/work/runner.ts'
import { createFirstNonce } from './first-nonce.ts'
import { followLane, type LaneParts, pollMsOf, resumeLane, sendLane, waitForWork } from './lane.ts'
import { type Planning, planAll, planOne } from './lane-plan.ts'
import { findNextNonce, insertLane, type LaneKey, listOpenSenders, type OpenSender } from './lane-store.ts'
import type { AccountLanes, AccountPlan, Chains, FeeSponsor, LaneHandler, LaneSigner } from './port.ts'

const idlePollMs = 250
const leaderRetryMs = 2_000
const failureMs = 500
const lookMsMin = 20
/** How long a signer is kept at hand for an account that sends nothing. */
const restMs = 10_000
/** Accounts whose lanes are passed over at once: each takes a few statements and two requests to the node. */
const passedAtOnce = 8

export interface AccountLanesOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'random' | 'log' | 'metrics'>
  readonly chains: Chains
  /** Whose lanes are driven elsewhere: the settler's. */
  readonly except: Address
  /** Pays the fees of what is planned as sponsored (Tempo). */
  readonly sponsor?: FeeSponsor
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
  const firstNonce = createFirstNonce(deps, chains)
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
        await waitForWork(waker?.promise ?? Promise.resolve(), await driver.pass(), stopping.signal)
      } catch (error) {
        deps.log.warn({ err: error, network: network.name }, 'the lanes of accounts could not go on; tried again')
        await pause(failureMs, stopping.signal)
      }
    }
    await driver.rest()
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
        await insertLane(deps.db, lane, await firstNonce(network, account))
      }
      prepared.add(name)
    },
    plan: (tx, account, planned) => planOne(deps, tx, planning({ account, planned })),
    planAll: (tx, wanted) => planAll(deps, tx, wanted.map(planning)),
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

function planning({ account, planned }: AccountPlan): Planning {
  return { lane: { network: planned.network.name, sender: account }, planned }
}

/** An account whose lane is taken up. */
interface Account {
  readonly parts: LaneParts
  followedAtMs: number
  sentAtMs: number
  /** Since when it has had nothing open; undefined while it has. */
  restsSinceMs: number | undefined
}

/** What one leadership of a network knows of its accounts: who signs, and whose lane it has taken up already. */
class NetworkDriver {
  readonly network: Network
  readonly #options: AccountLanesOptions
  readonly #handlers: ReadonlyMap<string, LaneHandler>
  readonly #accounts = new Map<Address, Account>()
  /** Accounts whose transactions are being looked after. */
  readonly #followed = new Map<Address, { isAgain: boolean; done: Promise<void> }>()

  constructor(options: AccountLanesOptions, network: Network, handlers: ReadonlyMap<string, LaneHandler>) {
    this.#options = options
    this.network = network
    this.#handlers = handlers
  }

  /** One pass over every account that has something open; answers after how many milliseconds the next is due. */
  async pass(): Promise<number> {
    const { deps, except } = this.#options
    const open = await listOpenSenders(deps.db, this.network.name, except)
    const waiting = [...open]
    const workers = Array.from({ length: Math.min(passedAtOnce, waiting.length) }, async () => {
      for (let account = waiting.pop(); account !== undefined; account = waiting.pop()) await this.#passAccount(account)
    })
    await Promise.all(workers)
    this.#forgetIdle(open)
    if (open.length === 0) return idlePollMs
    const now = this.#options.deps.clock.now().getTime()
    return Math.min(
      pollMsOf(this.network),
      ...[...this.#accounts.values()].map((account) => this.#lookMs(account, now)),
    )
  }

  /** How long after the last look an account is looked at again: soon after it sent something, since some chains take it in at once. */
  #lookMs({ sentAtMs }: Account, now: number): number {
    return Math.min(pollMsOf(this.network), Math.max(lookMsMin, (now - sentAtMs) / 2))
  }

  async #passAccount({ sender, hasUnsent }: OpenSender): Promise<void> {
    const lane = { network: this.network.name, sender }
    try {
      const account = this.#accounts.get(sender) ?? (await this.#takeUp(sender))
      if (account === undefined) return
      const { sent } = hasUnsent ? await sendLane(account.parts, lane) : { sent: 0 }
      this.#follow(account, lane, sent > 0)
    } catch (error) {
      this.#options.deps.log.warn({ err: error, ...lane }, 'the lane of an account could not go on; tried again')
    }
  }

  /**
   * Looks after what an account sent while the next is sent already: at once where something went out, else when it is time. Once at a time,
   * and again where more went out meanwhile.
   */
  #follow(account: Account, lane: LaneKey, isNews: boolean): void {
    const known = this.#followed.get(lane.sender)
    const now = this.#options.deps.clock.now().getTime()
    if (isNews) account.sentAtMs = now
    if (known !== undefined) known.isAgain ||= isNews
    if (known !== undefined || (!isNews && now - account.followedAtMs < this.#lookMs(account, now))) return
    account.followedAtMs = now
    const { parts } = account
    const under = { isAgain: false, done: Promise.resolve() }
    under.done = this.#followUntilDone(parts, lane, under).finally(() => this.#followed.delete(lane.sender))
    this.#followed.set(lane.sender, under)
  }

  async #followUntilDone(parts: LaneParts, lane: LaneKey, under: { isAgain: boolean }): Promise<void> {
    do {
      under.isAgain = false
      await followLane(parts, lane).catch((error: unknown) =>
        this.#options.deps.log.warn({ err: error, ...lane }, 'what an account sent could not be followed; tried again'),
      )
    } while (under.isAgain)
  }

  /** Resolves when nothing of it is under way any more. */
  async rest(): Promise<void> {
    await Promise.all([...this.#followed.values()].map(({ done }) => done))
  }

  async #takeUp(account: Address): Promise<Account | undefined> {
    const { deps, chains, signerOf, sponsor } = this.#options
    const lane = { network: this.network.name, sender: account }
    const signer = await signerOf(account)
    if (signer === undefined) {
      deps.log.error(lane, 'nobody signs for an account that has transactions to send')
      return undefined
    }
    const chain = chains.on(this.network)
    const parts = { deps, chain, signer, sponsor, handlers: this.#handlers, usedSince: new Map<string, number>() }
    await resumeLane(parts, lane)
    const taken = { parts, followedAtMs: 0, sentAtMs: 0, restsSinceMs: undefined }
    this.#accounts.set(account, taken)
    return taken
  }

  /** An account that has been at rest for a while costs nothing any more; when it sends again, its lane is taken up anew. */
  #forgetIdle(open: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    const busy = new Set(open.map(({ sender }) => sender))
    for (const [sender, account] of this.#accounts) {
      account.restsSinceMs = busy.has(sender) ? undefined : (account.restsSinceMs ?? now)
      if (now - (account.restsSinceMs ?? now) > restMs) this.#accounts.delete(sender)
    }
  }
}
