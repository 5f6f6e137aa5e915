import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { pause } from '../platform/work/runner.ts'
import { createFirstNonce } from './first-nonce.ts'
import { followLanes, type LaneParts, resumeLane, sendLanes } from './lane.ts'
import { pollMsOf, waitForWork } from './lane-pace.ts'
import { type Planning, planAll, planOne } from './lane-plan.ts'
import { cannotGoOn } from './lane-send.ts'
import { findNextNonce, insertLane, listOpenSenders, type OpenSender } from './lane-store.ts'
import type { AccountLanes, AccountPlan, Chains, FeeSponsor, LaneHandler, LaneSigner } from './port.ts'

const idlePollMs = 250
const leaderRetryMs = 2_000
const failureMs = 500
const lookMsMin = 20
/** How long a signer is kept at hand for an account that sends nothing. */
const restMs = 10_000
/** Accounts whose lanes are taken up at the same time: each takes a few statements and a request to the node. */
const takenUpAtOnce = 8
/** Accounts that are passed over together, no more than one sending carries transactions; and transactions that are asked about together. */
const sendersAtOnce = 50
const followedAtOnce = 200

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
  readonly signer: LaneSigner
  followedAtMs: number
  sentAtMs: number
  /** Since when it has had nothing open; undefined while it has. */
  restsSinceMs: number | undefined
}

/** What one leadership of a network knows of its accounts: who signs, and whose lane it has taken up already. */
class NetworkDriver {
  readonly network: Network
  readonly #options: AccountLanesOptions
  readonly #parts: LaneParts
  readonly #accounts = new Map<Address, Account>()
  /** Accounts whose transactions are to be looked after, and how many each has. */
  readonly #due = new Map<Address, number>()
  #followed: ReadonlySet<Address> = new Set()
  #following: Promise<void> | undefined

  constructor(options: AccountLanesOptions, network: Network, handlers: ReadonlyMap<string, LaneHandler>) {
    this.#options = options
    this.network = network
    const { deps, chains, sponsor } = options
    const signerOf = (account: Address) => this.#signerOf(account)
    this.#parts = { deps, chain: chains.on(network), signerOf, sponsor, handlers, usedSince: new Map() }
  }

  /** One pass over every account that has something open, many at once; answers after how many milliseconds the next is due. */
  async pass(): Promise<number> {
    const { deps, except } = this.#options
    const open = await listOpenSenders(deps.db, this.network.name, except)
    await this.#takeUp(open)
    const taken = open.filter(({ sender }) => this.#accounts.has(sender))
    await this.#send(taken)
    this.#follow(taken)
    this.#forgetIdle(open)
    if (open.length === 0) return idlePollMs
    const now = deps.clock.now().getTime()
    return Math.min(
      pollMsOf(this.network),
      ...[...this.#accounts.values()].map((account) => this.#lookMs(account, now)),
    )
  }

  /** Resolves when nothing of it is under way any more. */
  async rest(): Promise<void> {
    await this.#following
  }

  #signerOf(account: Address): LaneSigner {
    const signer = this.#accounts.get(account)?.signer
    if (signer === undefined) throw new Error('an account whose lane is not taken up')
    return signer
  }

  async #takeUp(open: readonly OpenSender[]): Promise<void> {
    const waiting = open.filter(({ sender }) => !this.#accounts.has(sender))
    const workers = Array.from({ length: Math.min(takenUpAtOnce, waiting.length) }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
        await this.#takeUpOne(next.sender).catch(cannotGoOn(this.#parts, next.sender))
    })
    await Promise.all(workers)
  }

  async #takeUpOne(account: Address): Promise<void> {
    const { deps, signerOf } = this.#options
    const lane = { network: this.network.name, sender: account }
    const signer = await signerOf(account)
    if (signer === undefined) return deps.log.error(lane, 'nobody signs for an account that has transactions to send')
    await resumeLane(this.#parts, lane)
    this.#accounts.set(account, { signer, followedAtMs: 0, sentAtMs: 0, restsSinceMs: undefined })
  }

  async #send(taken: readonly OpenSender[]): Promise<void> {
    const unsent = taken.filter(({ hasUnsent }) => hasUnsent).map(({ sender }) => sender)
    for (let from = 0; from < unsent.length; from += sendersAtOnce) {
      const some = unsent.slice(from, from + sendersAtOnce)
      for (const sender of await sendLanes(this.#parts, some)) this.#isNews(sender)
    }
  }

  /** Something of it went out: some chains take it in at once, so that it is looked at again soon. */
  #isNews(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.sentAtMs = this.#options.deps.clock.now().getTime()
    this.#due.set(sender, 1)
  }

  /** How long after the last look an account is looked at again: soon after it sent something. */
  #lookMs({ sentAtMs }: Account, now: number): number {
    return Math.min(pollMsOf(this.network), Math.max(lookMsMin, (now - sentAtMs) / 2))
  }

  /**
   * Looks after what accounts sent while the next is sent already: at once where something went out, else when it is time. Once at a time; what
   * went out meanwhile is looked after next.
   */
  #follow(taken: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    for (const { sender, count } of taken) {
      const account = this.#accounts.get(sender)
      if (account === undefined) continue
      const isTime = !this.#followed.has(sender) && now - account.followedAtMs >= this.#lookMs(account, now)
      if (isTime || this.#due.has(sender)) this.#due.set(sender, Number(count))
    }
    if (this.#due.size > 0) this.#following ??= this.#followDue().finally(() => (this.#following = undefined))
  }

  async #followDue(): Promise<void> {
    while (this.#due.size > 0) {
      const some = this.#nextDue()
      this.#followed = new Set(some)
      for (const sender of some) this.#lookedAt(sender)
      await followLanes(this.#parts, some).catch((error: unknown) =>
        this.#options.deps.log.warn(
          { err: error, network: this.network.name },
          'what accounts sent could not be followed; tried again',
        ),
      )
    }
    this.#followed = new Set()
  }

  /** As many accounts as have together no more transactions than one request asks about; one at least. */
  #nextDue(): Address[] {
    const some: Address[] = []
    let transactions = 0
    for (const [sender, count] of this.#due) {
      transactions += count
      if (some.length > 0 && (transactions > followedAtOnce || some.length === sendersAtOnce)) break
      some.push(sender)
      this.#due.delete(sender)
    }
    return some
  }

  #lookedAt(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.followedAtMs = this.#options.deps.clock.now().getTime()
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
