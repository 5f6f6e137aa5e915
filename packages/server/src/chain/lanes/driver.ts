import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { HeldLeases } from '../../platform/leases/store.ts'
import type { Chains, FeeSponsor } from '../port.ts'
import { followLanes } from './follow.ts'
import type { Handlers } from './handlers.ts'
import { pollMsOf } from './pace.ts'
import { inParallel, type LaneParts, logStalled } from './parts.ts'
import type { LaneSigner } from './port.ts'
import { resumeLanes } from './resume.ts'
import { sendLanes } from './send.ts'
import { listOpenSenders, listRecentSenders, type OpenSender } from './store.ts'

const lookMsMin = 20
/** Before the signer of an account is looked up again where there was none. */
const signerRetryMs = 1_000
/** How long a signer is kept for an account that sends nothing. */
const restMs = 10_000
/** Accounts whose signers are looked up at the same time. */
const signersAtOnce = 8
/** Accounts that are worked on together, no more than one sending carries transactions; and transactions whose receipts are requested together. */
const sendersAtOnce = 50
const followedAtOnce = 200

export interface DriverOptions {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chains: Chains
  readonly network: Network
  /** Who signs for an account; undefined where nobody here does. */
  readonly signerOf: (account: Address) => Promise<LaneSigner | undefined>
  /** Pays the fees of what is planned as sponsored (Tempo). */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
}

/** An account whose lane was resumed, under the lease of its shard with this epoch. */
interface Account {
  readonly signer: LaneSigner
  readonly epoch: bigint
  followedAtMs: number
  sentAtMs: number
  /** Since when it has had nothing open; undefined while it has. */
  restsSinceMs: number | undefined
}

/**
 * Drives the lanes of a network's leased shards. All that it remembers can be lost: whose lanes it has resumed under which lease, and when each
 * was last looked at. An account that fails blocks no other.
 */
export class NetworkDriver {
  readonly #options: DriverOptions
  readonly #base: Omit<LaneParts, 'held'>
  readonly #accounts = new Map<Address, Account>()
  /** Accounts whose transactions are to be followed, and how many each has. */
  readonly #due = new Map<Address, number>()
  /** Epochs of the shards whose recent senders were resumed. */
  readonly #resumed = new Map<number, bigint>()
  readonly #signerNextAtMs = new Map<Address, number>()
  /** Of the turn that began last. */
  #parts: LaneParts | undefined
  #followed: ReadonlySet<Address> = new Set()
  #following: Promise<void> | undefined

  constructor(options: DriverOptions) {
    this.#options = options
    const { deps, chains, network, sponsor, handlers } = options
    const signerOf = (account: Address) => this.#signerOf(account)
    this.#base = { deps, chain: chains.on(network), signerOf, sponsor, handlers, usedSince: new Map() }
  }

  /** One turn over every account that has something open; returns in how many milliseconds the next is due, undefined while nothing is open. */
  async turn(held: HeldLeases): Promise<number | undefined> {
    if (held.leases.length === 0) return undefined
    const { deps, network } = this.#options
    if (!deps.witness.isCurrent()) return pollMsOf(network)
    const parts = { ...this.#base, held }
    this.#parts = parts
    const open = await listOpenSenders(deps.db, network.name, held)
    await this.#resume(parts, open)
    const ready = open.filter(({ sender, shard }) => this.#accounts.get(sender)?.epoch === epochOf(held, shard))
    await this.#send(parts, ready)
    this.#follow(ready)
    await this.#resumeRecent(parts)
    this.#forgetIdle(open)
    if (open.length === 0) return undefined
    const now = deps.clock.now().getTime()
    return Math.min(pollMsOf(network), ...[...this.#accounts.values()].map((account) => this.#lookMs(account, now)))
  }

  /** Resolves when nothing of it is under way any more. */
  async rest(): Promise<void> {
    await this.#following
  }

  #signerOf(account: Address): LaneSigner {
    const signer = this.#accounts.get(account)?.signer
    if (signer === undefined) throw new Error('an account whose lane was not resumed')
    return signer
  }

  /** Of shards that were just leased, resumes those who sent lately and have nothing open: the chain may be behind what was final. */
  async #resumeRecent(parts: LaneParts): Promise<void> {
    const fresh = parts.held.leases.filter(({ shard, epoch }) => this.#resumed.get(shard) !== epoch)
    if (fresh.length === 0) return
    const recent = await listRecentSenders(parts.deps.db, parts.chain.network.name, { ...parts.held, leases: fresh })
    const resting = recent.filter((sender) => !this.#accounts.has(sender))
    for (const some of inChunks(resting, sendersAtOnce)) await resumeLanes(parts, some)
    for (const { shard, epoch } of fresh) this.#resumed.set(shard, epoch)
  }

  async #resume(parts: LaneParts, open: readonly OpenSender[]): Promise<void> {
    const fresh = open.filter(({ sender, shard }) => this.#accounts.get(sender)?.epoch !== epochOf(parts.held, shard))
    for (const some of inChunks(fresh, sendersAtOnce)) {
      const found = await inParallel(some, signersAtOnce, async ({ sender, shard }) => {
        const signer = await this.#findSigner(parts, sender)
        const epoch = epochOf(parts.held, shard)
        return signer === undefined || epoch === undefined ? [] : [{ sender, signer, epoch }]
      })
      const signing = found.flat()
      if (signing.length === 0) continue
      await resumeLanes(
        parts,
        signing.map(({ sender }) => sender),
      )
      for (const { sender, signer, epoch } of signing)
        this.#accounts.set(sender, { signer, epoch, followedAtMs: 0, sentAtMs: 0, restsSinceMs: undefined })
    }
  }

  /** Undefined where there is none, or it cannot be found now: the account waits, and the signer is looked up again later. */
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

  /** Something of the account went out: some chains take it in at once, so it is looked at again soon. */
  #wasSent(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.sentAtMs = this.#options.deps.clock.now().getTime()
    this.#due.set(sender, 1)
  }

  /** How long after the last look an account is looked at again: soon after it sent something. */
  #lookMs({ sentAtMs }: Account, now: number): number {
    return Math.min(pollMsOf(this.#options.network), Math.max(lookMsMin, (now - sentAtMs) / 2))
  }

  /**
   * Follows what accounts sent while the next is being sent: at once where something went out, else when it is time. One pass at a time; what
   * goes out meanwhile is followed next.
   */
  #follow(ready: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    for (const { sender, count } of ready) {
      const account = this.#accounts.get(sender)
      if (account === undefined) continue
      const isTime = !this.#followed.has(sender) && now - account.followedAtMs >= this.#lookMs(account, now)
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
          'sent transactions could not be followed; tried again',
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

  #wasFollowed(sender: Address): void {
    const account = this.#accounts.get(sender)
    if (account !== undefined) account.followedAtMs = this.#options.deps.clock.now().getTime()
  }

  /** An account that has been at rest for a while costs nothing any more; when it sends again, its lane is resumed anew. */
  #forgetIdle(open: readonly OpenSender[]): void {
    const now = this.#options.deps.clock.now().getTime()
    const busy = new Set(open.map(({ sender }) => sender))
    for (const [sender, account] of this.#accounts) {
      account.restsSinceMs = busy.has(sender) ? undefined : (account.restsSinceMs ?? now)
      if (now - (account.restsSinceMs ?? now) > restMs) this.#accounts.delete(sender)
    }
  }
}

function epochOf({ leases }: HeldLeases, shard: number): bigint | undefined {
  return leases.find((lease) => lease.shard === shard)?.epoch
}

function inChunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}
