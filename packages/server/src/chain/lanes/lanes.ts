import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import { keepLeases, type Leases } from '../../platform/leases/leases.ts'
import type { LeaseSet, Share } from '../../platform/leases/store.ts'
import { startDueLoop } from '../../platform/work/due-work.ts'
import { type RunningLoop, startLoop } from '../../platform/work/loop.ts'
import type { Chains, FeeSponsor } from '../port.ts'
import { followLanes } from './follow.ts'
import { createOverdueLog } from './overdue.ts'
import type { AccountPlan, ChainTransactionId, Handlers, LaneHandler, LaneSigner, Lanes } from './port.ts'
import { listRecentSenders, markReopened } from './recovery-store.ts'
import { resumeLanes } from './resume.ts'
import { createSearches } from './searches.ts'
import { type LaneParts, logStalled, sendLanes } from './send.ts'
import {
  countOpen,
  findNextNonce,
  insertLane,
  insertTransactions,
  isAnyOpen,
  type LaneKey,
  listOpenNetworks,
  listOpenSenders,
  type NewTransaction,
  type OpenSender,
  takeNonces,
} from './store.ts'

/** Milliseconds between two comparisons of the idle networks, in one statement, with what is open: other processes plan too. */
const idlePollMs = 250
const [failureMs, leaseMsDefault] = [500, 6_000]
/** Most transactions of an account in flight (nodes keep 16 of each in any case), and most of them that are sent alone. */
const [openMaxDefault, singleMax] = [10, 3]

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
    async plan(tx, account, planned) {
      const [id] = await planAll(deps, tx, [{ account, planned }])
      if (id === undefined) throw new Error('a transaction was not planned')
      return id
    },
    planAll: (tx, wanted) => planAll(deps, tx, wanted),
    slots: { batch: (options.openMax ?? openMaxDefault) - singleMax, single: singleMax },
    openCounts: (db, network, account) => countOpen(db, { network: network.name, sender: account }),
    reopen: markReopened,
    notify: (network) => work?.notify(network.name),
    start(handlers) {
      work = new LaneWork(options, handlers)
    },
    stop: async () => work?.stop(),
  }
}

/** The lane work of one process: leases shards, drives each network, and polls for work in idle networks. */
class LaneWork {
  readonly #deps: LanesOptions['deps']
  /** Idle networks, whose drivers wait for a notification. */
  readonly #idle = new Set<string>()
  readonly #leases: Leases
  readonly #drives: ReadonlyMap<string, { readonly driver: LaneDriver; readonly loop: RunningLoop }>
  readonly #poll: RunningLoop

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
        const driver = new LaneDriver({ ...options, network, handlers: byPurpose })
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
    await Promise.all(drives.map(({ driver }) => driver.waitUntilIdle('stopped')))
    await this.#leases.stop()
  }

  /** Drives a network while it has open transactions, and otherwise when notified. */
  #drive(name: string, driver: LaneDriver): RunningLoop {
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

type PlanDeps = Pick<Deps, 'clock' | 'random' | 'witness'>

/**
 * Assigns nonces and stores the transactions in the caller's database transaction. Each lane sends its transactions in the given order. Throws
 * `service-unavailable` while the database is behind its witness or a lane was not compared with the chain since a restore.
 */
async function planAll(deps: PlanDeps, tx: Tx, plans: readonly AccountPlan[]): Promise<ChainTransactionId[]> {
  deps.witness.requireCurrent()
  const wanted = plans.map(({ account, planned }) => {
    return { lane: { network: planned.network.name, sender: account }, planned }
  })
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

const pollMsMin = 20
/** Delay before a missing signer is looked up again. */
const signerRetryMs = 1_000
/** Milliseconds for which the signer of an idle account stays in memory. */
const idleMsMax = 10_000
/** Signer lookups at the same time. */
const signersAtOnce = 8
/** Most accounts in one batch (at most the transactions of one send), and most transactions whose receipts one request reads. */
const [sendersAtOnce, followedAtOnce] = [50, 200]

interface DriverOptions extends LanesOptions {
  readonly network: Network
  readonly handlers: Handlers
}

/** An account whose lane was resumed under the shard lease with this epoch. */
interface Account {
  readonly signer: LaneSigner
  readonly epoch: bigint
  followedAtMs: number
  sentAtMs: number
  /** The time at which its last open transaction closed, in milliseconds; undefined while it has open transactions. */
  idleSinceMs: number | undefined
}

/**
 * Drives the lanes of a network's leased shards. Its memory is a cache that can be lost: which lanes it resumed under which lease, and when it last
 * polled each. A failing account does not block others.
 */
export class LaneDriver {
  readonly #options: DriverOptions
  readonly #base: Omit<LaneParts, 'leased'>
  readonly #accounts = new Map<Address, Account>()
  /** Accounts whose transactions are due to be followed, with their number of transactions. */
  readonly #due = new Map<Address, number>()
  /** Epochs of the shards whose recent senders were resumed. */
  readonly #resumed = new Map<number, bigint>()
  readonly #signerNextAtMs = new Map<Address, number>()
  /** The parts of the latest turn. */
  #parts: LaneParts | undefined
  #followed: ReadonlySet<Address> = new Set()
  #following: Promise<void> | undefined

  constructor(options: DriverOptions) {
    this.#options = options
    const { deps, chains, network, sponsor, handlers } = options
    const signerOf = (account: Address) => this.#signerOf(account)
    const memory = { usedSince: new Map(), searches: createSearches(), overdue: createOverdueLog(deps) }
    this.#base = { deps, chain: chains.on(network), signerOf, sponsor, handlers, ...memory }
  }

  /** Processes every account with open transactions once. Returns the milliseconds until the next turn, or undefined when nothing is open. */
  async turn(leased: LeaseSet): Promise<number | undefined> {
    if (leased.leases.length === 0) return undefined
    const { deps, network } = this.#options
    if (!deps.witness.isCurrent()) return pollMsOf(network)
    const parts = { ...this.#base, leased }
    this.#parts = parts
    const open = await listOpenSenders(deps.db, network.name, leased)
    await this.#resume(parts, open)
    const ready = open.filter(({ sender, shard }) => this.#accounts.get(sender)?.epoch === epochOf(leased, shard))
    await this.#send(parts, ready)
    this.#follow(ready)
    await this.#resumeRecent(parts)
    this.#forgetIdle(open)
    if (open.length === 0) return undefined
    const now = deps.clock.now().getTime()
    return Math.min(pollMsOf(network), ...[...this.#accounts.values()].map((account) => this.#pollMs(account, now)))
  }

  /** Resolves when the following in progress has ended, and then the searches, all of them stopped, or each at its own end. */
  async waitUntilIdle(searches: 'stopped' | 'finished'): Promise<void> {
    await this.#following
    await this.#base.searches[searches === 'stopped' ? 'stop' : 'settled']()
  }

  #signerOf(account: Address): LaneSigner {
    const signer = this.#accounts.get(account)?.signer
    if (signer === undefined) throw new Error('the account’s lane was not resumed')
    return signer
  }

  /** Resumes recent senders of newly leased shards that have nothing open, because the chain may have lost transactions that were final. */
  async #resumeRecent(parts: LaneParts): Promise<void> {
    const fresh = parts.leased.leases.filter(({ shard, epoch }) => this.#resumed.get(shard) !== epoch)
    if (fresh.length === 0) return
    const recent = await listRecentSenders(parts.deps.db, parts.chain.network.name, { ...parts.leased, leases: fresh })
    const idle = recent.filter((sender) => !this.#accounts.has(sender))
    for (const some of inChunks(idle, sendersAtOnce)) await resumeLanes(parts, some)
    for (const { shard, epoch } of fresh) this.#resumed.set(shard, epoch)
  }

  async #resume(parts: LaneParts, open: readonly OpenSender[]): Promise<void> {
    const fresh = open.filter(({ sender, shard }) => this.#accounts.get(sender)?.epoch !== epochOf(parts.leased, shard))
    for (const some of inChunks(fresh, sendersAtOnce)) {
      const found = await inParallel(some, signersAtOnce, async ({ sender, shard }) => {
        const signer = await this.#findSigner(parts, sender)
        const epoch = epochOf(parts.leased, shard)
        return signer === undefined || epoch === undefined ? [] : [{ sender, signer, epoch }]
      })
      const signing = found.flat()
      if (signing.length === 0) continue
      const senders = signing.map(({ sender }) => sender)
      await resumeLanes(parts, senders)
      for (const { sender, signer, epoch } of signing)
        this.#accounts.set(sender, { signer, epoch, followedAtMs: 0, sentAtMs: 0, idleSinceMs: undefined })
    }
  }

  /** Undefined when there is no signer or the lookup fails; the account waits and the lookup is retried later. */
  async #findSigner(parts: LaneParts, sender: Address): Promise<LaneSigner | undefined> {
    const now = this.#options.deps.clock.now().getTime()
    if (now < (this.#signerNextAtMs.get(sender) ?? 0)) return undefined
    const [signer] = await this.#options.signerOf(sender).then((found) => [found], logStalled(parts, sender))
    if (signer !== undefined) this.#signerNextAtMs.delete(sender)
    else this.#signerNextAtMs.set(sender, now + signerRetryMs)
    return signer
  }

  async #send(parts: LaneParts, ready: readonly OpenSender[]): Promise<void> {
    const unsent = ready.filter(({ hasUnsent }) => hasUnsent).map(({ sender }) => sender)
    for (const some of inChunks(unsent, sendersAtOnce))
      for (const sender of await sendLanes(parts, some)) this.#wasSent(sender)
  }

  /** Records that the account sent something. It is polled again soon, because some chains mine at once. */
  #wasSent(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.sentAtMs = this.#options.deps.clock.now().getTime()
    this.#due.set(sender, 1)
  }

  /** Milliseconds between two polls of an account; short just after it sent something. */
  #pollMs({ sentAtMs }: Account, now: number): number {
    return Math.min(pollMsOf(this.#options.network), Math.max(pollMsMin, (now - sentAtMs) / 2))
  }

  /**
   * Follows sent transactions while others are being sent: at once after a send, otherwise at the poll interval. One pass runs at a time;
   * transactions sent meanwhile are followed by the next pass.
   */
  #follow(ready: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    for (const { sender, count } of ready) {
      const account = this.#accounts.get(sender)
      if (account === undefined) continue
      const isTime = !this.#followed.has(sender) && now - account.followedAtMs >= this.#pollMs(account, now)
      if (isTime || this.#due.has(sender)) this.#due.set(sender, Number(count))
    }
    if (this.#due.size > 0)
      this.#following ??= this.#followDue().finally(() => {
        this.#following = undefined
      })
  }

  async #followDue(): Promise<void> {
    for (let parts = this.#parts; this.#due.size > 0 && parts !== undefined; parts = this.#parts) {
      const some = this.#nextDue()
      this.#followed = new Set(some)
      for (const sender of some) this.#wasFollowed(sender)
      await followLanes(parts, some).catch((error: unknown) =>
        this.#options.deps.log.warn(
          { err: error, network: this.#options.network.name },
          'sent transactions could not be followed; retrying',
        ),
      )
    }
    this.#followed = new Set()
  }

  /** The next accounts whose transactions fit into one request; at least one account. */
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

  #wasFollowed(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.followedAtMs = this.#options.deps.clock.now().getTime()
  }

  /** Drops accounts that have been idle for a while. When one sends again, its lane is resumed. */
  #forgetIdle(open: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    const busy = new Set(open.map(({ sender }) => sender))
    for (const [sender, account] of this.#accounts) {
      account.idleSinceMs = busy.has(sender) ? undefined : (account.idleSinceMs ?? now)
      if (now - (account.idleSinceMs ?? now) > idleMsMax) this.#accounts.delete(sender)
    }
  }
}

function epochOf({ leases }: LeaseSet, shard: number): bigint | undefined {
  return leases.find((lease) => lease.shard === shard)?.epoch
}

function inChunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}

/** Poll interval of an open lane in milliseconds: a twentieth of the block time, between 50 and 1,000. */
function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}
