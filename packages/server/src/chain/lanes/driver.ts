import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import type { LeaseSet } from '../../platform/leases/store.ts'
import type { Chains, FeeSponsor } from '../port.ts'
import { followLanes, resumeLanes } from './follow.ts'
import type { Handlers, LaneSigner } from './port.ts'
import { listRecentSenders } from './recovery-store.ts'
import { type LaneParts, logStalled, sendLanes } from './send.ts'
import { listOpenSenders, type OpenSender } from './store.ts'

const pollMsMin = 20
/** Delay before a missing signer is looked up again. */
const signerRetryMs = 1_000
/** How long the signer of an idle account stays in memory. */
const idleMsMax = 10_000
/** Signer lookups at the same time. */
const signersAtOnce = 8
/** Most accounts in one batch (at most the transactions of one send), and most transactions whose receipts one request reads. */
const sendersAtOnce = 50
const followedAtOnce = 200

export interface DriverOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chains: Chains
  readonly network: Network
  /** The account's signer; undefined when this process has none. */
  readonly signerOf: (account: Address) => Promise<LaneSigner | undefined>
  /** Pays the fees of sponsored transactions (Tempo). */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
}

/** An account whose lane was resumed under the shard lease with this epoch. */
interface Account {
  readonly signer: LaneSigner
  readonly epoch: bigint
  followedAtMs: number
  sentAtMs: number
  /** When its last open transaction closed; undefined while it has open transactions. */
  idleSinceMs: number | undefined
}

/**
 * Drives the lanes of a network's leased shards. Its memory is a cache that can be lost: which lanes it resumed under which lease, and when it last
 * polled each. A failing account does not block others.
 */
export class NetworkDriver {
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
    this.#base = { deps, chain: chains.on(network), signerOf, sponsor, handlers, usedSince: new Map() }
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

  /** Resolves when the following in progress has ended. */
  async waitUntilIdle(): Promise<void> {
    await this.#following
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
      await resumeLanes(
        parts,
        signing.map(({ sender }) => sender),
      )
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
