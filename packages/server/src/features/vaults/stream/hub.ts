import { setImmediate as turn } from 'node:timers/promises'
import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { createPoller, type Poller, type Read } from '../../../platform/event-streams/poller.ts'
import { roundRobin } from '../../../platform/round-robin.ts'
import type { VaultId } from '../schema.ts'
import type { EventStream } from './event-stream.ts'
import { expiryFrameOf, type Frame, frameOf } from './frame.ts'
import { type Followed, listExpiries, listNews, type News } from './store.ts'

const eventsOfVaultMax = 100
const rowsMax = 2_000
/** A read of more would be parsed and copied at once while everybody waits. */
const bytesMax = 2 ** 20
/** Streams that are written before the event loop gets a turn. */
const streamsPerTurn = 500

interface FollowedVault extends Followed {
  sequence: number
  /** The last read in which it had news. */
  newsIn: number
  readonly owner: string
  readonly streams: Set<EventStream>
}

type HubDeps = Pick<Deps, 'db' | 'clock' | 'log'>

/**
 * Sends events to the streams of this process. The table is the source: one statement reads new events of all followed vaults,
 * five times a second and at once when this process wrote some (`wake`). Reads never overlap, and a stream joins only when it has
 * everything that the hub has sent, so that it receives every event once and in order.
 */
export class Hub {
  readonly #deps: HubDeps
  readonly #vaults = new Map<VaultId, FollowedVault>()
  readonly #woken = new Set<VaultId>()
  readonly #poller: Poller
  #reads = 0
  #wasFull = false

  constructor(deps: HubDeps) {
    this.#deps = deps
    this.#poller = createPoller({
      log: deps.log,
      failure: 'new events of vaults could not be read; retrying',
      isNeeded: () => this.#vaults.size > 0,
      readAll: () => {
        this.#woken.clear()
        return this.#read([...this.#vaults.values()])
      },
      readWoken: () => this.#read(this.#takeWoken()),
    })
  }

  /**
   * Adds a stream and returns undefined; or, if the hub has already sent events that the stream lacks, returns the sequence
   * number up to which it must read first. The stream's connection must be open.
   */
  join(stream: EventStream): number | undefined {
    const known = this.#vaults.get(stream.vaultId)
    if (known !== undefined && stream.sent < known.sequence) return known.sequence
    const vault = known ?? this.#follow(stream)
    vault.streams.add(stream)
    return undefined
  }

  leave(stream: EventStream): void {
    const vault = this.#vaults.get(stream.vaultId)
    if (vault?.streams.delete(stream) === true && vault.streams.size === 0) this.#forget(vault)
  }

  /** Reads the vault's new events now, if a stream here follows it. Never throws. */
  wake(vaultId: VaultId): void {
    if (!this.#vaults.has(vaultId)) return
    this.#woken.add(vaultId)
    this.#poller.pollWoken()
  }

  /** Stops reading; resolves when the current read has been sent. */
  async stop(): Promise<void> {
    this.#vaults.clear()
    this.#woken.clear()
    await this.#poller.stop()
  }

  #follow({ tenant, owner, vaultId, sent }: EventStream): FollowedVault {
    const vault = { tenant, owner, vaultId, sequence: sent, newsIn: 0, streams: new Set<EventStream>() }
    this.#vaults.set(vaultId, vault)
    this.#poller.start()
    return vault
  }

  #forget(vault: FollowedVault): void {
    if (this.#vaults.get(vault.vaultId) === vault) this.#vaults.delete(vault.vaultId)
    this.#woken.delete(vault.vaultId)
  }

  #takeWoken(): FollowedVault[] {
    const vaults = [...this.#woken].flatMap((vaultId) => this.#vaults.get(vaultId) ?? [])
    this.#woken.clear()
    return vaults
  }

  async #read(followed: readonly FollowedVault[]): Promise<Read | undefined> {
    if (followed.length === 0) return undefined
    // Their order matters only while reads are full. The last one was, so this one may be.
    const vaults = this.#wasFull ? inOrderOfTurns(followed) : followed
    const read = ++this.#reads
    const bounds = { now: this.#deps.clock.now(), eventsOfVaultMax, rowsMax, bytesMax }
    const found = await listNews(this.#deps.db, vaults, bounds)
    const news = byVault(vaults, found)
    for (const vault of news.keys()) vault.newsIn = read
    const bytes = found.reduce((sum, { size }) => sum + size, 0)
    this.#wasFull = found.length === rowsMax || bytes >= bytesMax
    const isMore = this.#wasFull || [...news.values()].some(({ length }) => length === eventsOfVaultMax)
    const expiries = await this.#expiriesOf(news, bounds.now)
    const send = async () => {
      for (const [vault, rows] of news) await this.#send(vault, rows, expiries.get(vault))
    }
    return { isMore, send }
  }

  /** Returns when those of the vaults expired that are gone and were not deleted. */
  async #expiriesOf(news: ReadonlyMap<FollowedVault, readonly News[]>, now: Date): Promise<Map<FollowedVault, Date>> {
    const gone = [...news].flatMap(([vault, rows]) => (rows.some(({ isGone }) => isGone) ? [vault] : []))
    const expiries = gone.length === 0 ? [] : await listExpiries(this.#deps.db, gone, now)
    return new Map(
      expiries.flatMap(({ position, expiredAt }) => {
        const vault = gone[position - 1]
        return vault === undefined ? [] : [[vault, expiredAt]]
      }),
    )
  }

  async #send(vault: FollowedVault, news: readonly News[], expiredAt: Date | undefined): Promise<void> {
    const frames = framesOf(vault, news)
    const last = frames.at(-1)
    if (last !== undefined && last.sequence !== vault.sequence + frames.length) {
      // It should never happen, and no stream may continue over a gap: each client reconnects and reads the table.
      this.#deps.log.error({ vaultId: vault.vaultId, after: vault.sequence }, 'the events of a vault have a gap')
      return forEachStream(vault, ({ line }) => line.cut())
    }
    // Access that ends with the vault covers the vault's last events.
    await sendFrames(
      vault,
      frames,
      expiredAt === undefined ? this.#deps.clock.now() : instantOf(expiredAt.getTime() - 1),
    )
    if (!news.some(({ isGone }) => isGone)) return
    const expiry = expiredAt && expiryFrameOf(vault.vaultId, expiredAt)
    await forEachStream(vault, (stream) => stream.endGone(expiry))
  }
}

/**
 * Returns the vaults in the order in which a read serves them: one of each owner, then the next of each, with the owner and the vault first that had
 * news longest ago. Otherwise vaults whose news fill each read would leave nothing to those behind them.
 */
function inOrderOfTurns(vaults: readonly FollowedVault[]): FollowedVault[] {
  const ofOwners = [...Map.groupBy(vaults, ({ owner }) => owner).values()]
    .map((own) => own.toSorted((left, right) => left.newsIn - right.newsIn))
    .toSorted((left, right) => (left.at(-1)?.newsIn ?? 0) - (right.at(-1)?.newsIn ?? 0))
  return roundRobin(ofOwners)
}

function byVault(vaults: readonly FollowedVault[], rows: readonly News[]): Map<FollowedVault, News[]> {
  const grouped = new Map<FollowedVault, News[]>()
  for (const row of rows) {
    const vault = vaults[row.position - 1]
    if (vault === undefined) throw new Error('events of a vault that was not requested')
    const known = grouped.get(vault)
    if (known === undefined) grouped.set(vault, [row])
    else known.push(row)
  }
  return grouped
}

function framesOf({ vaultId }: FollowedVault, news: readonly News[]): Frame[] {
  return news.flatMap(({ sequence, id, type, payload, createdAt }) => {
    if (sequence === null || id === null || type === null || payload === null || createdAt === null) return []
    return [frameOf(vaultId, { sequence, id, type, payload, createdAt })]
  })
}

/**
 * Writes to all streams of a vault and yields to the event loop, so that a vault with thousands of readers does not block other
 * requests.
 */
async function sendFrames(vault: FollowedVault, frames: readonly Frame[], now: Date): Promise<void> {
  const last = frames.at(-1)
  if (last === undefined) return
  vault.sequence = last.sequence
  const whole = Buffer.concat(frames.map(({ bytes }) => bytes))
  await forEachStream(vault, (stream) => {
    stream.endIfExpired(now)
    if (stream.line.isOpen) stream.send(frames, whole)
  })
}

async function forEachStream(vault: FollowedVault, act: (stream: EventStream) => void): Promise<void> {
  let done = 0
  for (const stream of [...vault.streams]) {
    act(stream)
    if (++done % streamsPerTurn === 0) await turn()
  }
}
