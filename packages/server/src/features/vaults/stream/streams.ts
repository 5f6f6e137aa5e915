import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { EventStreamResponse, type SseConnection } from '../../../platform/event-stream-response.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { EndedReaders, Reader } from '../../../platform/reader.ts'
import { levelOf, mayTake } from '../../../platform/share.ts'
import { createTurns } from '../../../platform/turns.ts'
import type { VaultId } from '../schema.ts'
import { EventStream, type StreamOpening } from './event-stream.ts'
import { Hub } from './hub.ts'
import { type ReplayDeps, replay } from './replay.ts'

/** Most streams of one process, shared between their owners (`mayTake`, `placeOwner` of a call). */
const streamsMax = 20_000
const retryAfterSeconds = 5
/** Most bytes that wait for all slow readers of a process, shared between the owners of their places. */
const lagBytesMax = 256 * 2 ** 20
/** Most pages of past events that are read at once, shared between the owners of the streams. */
const readsMax = 8

/**
 * How often access is checked. Each stream has its heartbeat in one of fifteen such ticks, so that heartbeats never come all at
 * once.
 */
const beatMs = 1_000
const beatsPerHeartbeat = 15

export interface StreamsDeps extends Pick<Deps, 'db' | 'fairDb' | 'clock' | 'log' | 'metrics'> {
  readonly endedReaders: EndedReaders
}

/**
 * Every event stream of this process, from its first byte to its last. One timer serves all of them; it runs while there are any.
 */
export class VaultStreams {
  readonly #deps: StreamsDeps
  readonly #hub: Hub
  readonly #replayDeps: ReplayDeps
  readonly #gauge: ReturnType<Metrics['gauge']>
  readonly #open = new Map<EventStream, number>()
  readonly #ofOwner = new Map<string, number>()
  #opened = 0
  #beats = 0
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined

  constructor(deps: StreamsDeps) {
    this.#deps = deps
    this.#hub = new Hub(deps)
    this.#replayDeps = { ...deps, hub: this.#hub, reads: createTurns(readsMax) }
    this.#gauge = deps.metrics.gauge('purser_vault_streams', 'Open event streams.')
    const { gauge } = deps.metrics
    gauge('purser_vault_streams_max', 'Most event streams that the process opens.').set(streamsMax)
    const help = 'Open event streams of the account that has the most.'
    gauge('purser_vault_streams_largest_share', help, [], (shown) => shown.set(Math.max(0, ...this.#ofOwner.values())))
  }

  /** The number of open streams. */
  get count(): number {
    return this.#open.size
  }

  /** Refuses if this process, or one owner of places in it, has the most streams that it may. */
  refuseIfFull(owner: string): void {
    if (this.#open.size >= streamsMax) throw failPlatform('service-unavailable', { retryAfterSeconds })
    const own = this.#ofOwner.get(owner) ?? 0
    if (!mayTake({ own, taken: this.#open.size, max: streamsMax }))
      throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** Returns a response that sends `greeting`, then past events up to the event `head`, and then new events. */
  answer(opening: StreamOpening, head: number, greeting: Uint8Array): EventStreamResponse {
    let stream: EventStream | undefined
    const open = (line: SseConnection): void => {
      stream = new EventStream(opening, line)
      this.#add(stream)
      line.write(greeting)
      void replay(this.#replayDeps, stream, head)
    }
    return new EventStreamResponse(open, () => {
      if (stream !== undefined) this.#remove(stream)
    })
  }

  /** Notifies the hub that a vault has new events. Never throws. */
  wake(vaultId: VaultId): void {
    this.#hub.wake(vaultId)
  }

  /** Closes all streams; the server has ended the responses. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const stream of this.#open.keys()) stream.line.end()
    await Promise.all([this.#hub.stop(), this.#checking])
  }

  /**
   * Runs one tick of the timer: heartbeats of the streams that are due, and the end of streams whose access has ended. Never
   * fails.
   */
  beat(): Promise<void> {
    const now = this.#deps.clock.now()
    this.#beats = (this.#beats + 1) % beatsPerHeartbeat
    for (const [stream, turn] of this.#open) {
      if (turn === this.#beats) stream.beat()
      stream.endIfExpired(now)
    }
    this.#cutSlowest()
    this.#checking ??= this.#endRevoked().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  /** Cuts the slowest readers of an owner whose readers together let more wait than its share: their clients reconnect, and read on from the table. */
  #cutSlowest(): void {
    const slow = [...this.#open.keys()]
      .map((stream) => ({ stream, bytes: stream.lag() }))
      .filter(({ bytes }) => bytes > 0)
    const owners = [...Map.groupBy(slow, ({ stream }) => stream.owner).values()].map((own) => ({
      own: own.sort((one, other) => other.bytes - one.bytes),
      total: own.reduce((sum, { bytes }) => sum + bytes, 0),
    }))
    const level = levelOf(
      owners.map(({ total }) => total),
      lagBytesMax,
    )
    for (const { own, total } of owners) {
      let left = total
      for (const { stream, bytes } of own) {
        if (left <= level) break
        stream.line.cut()
        left -= bytes
      }
    }
  }

  #add(stream: EventStream): void {
    const { owner } = stream
    this.#open.set(stream, this.#opened++ % beatsPerHeartbeat)
    this.#ofOwner.set(owner, (this.#ofOwner.get(owner) ?? 0) + 1)
    this.#timer ??= setInterval(() => void this.beat(), beatMs).unref()
    this.#gauge.set(this.#open.size)
  }

  #remove(stream: EventStream): void {
    if (!this.#open.delete(stream)) return
    this.#hub.leave(stream)
    const { owner } = stream
    const left = (this.#ofOwner.get(owner) ?? 1) - 1
    if (left === 0) this.#ofOwner.delete(owner)
    else this.#ofOwner.set(owner, left)
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    this.#gauge.set(this.#open.size)
  }

  /** Ends the streams whose key, token or ticket was revoked since, by any process. */
  async #endRevoked(): Promise<void> {
    const keys = new Set<Reader>()
    for (const { right } of this.#open.keys()) if (right.reader !== undefined) keys.add(right.reader)
    if (keys.size === 0) return
    try {
      const revoked = new Set(await this.#deps.endedReaders([...keys]))
      for (const { right, line } of this.#open.keys())
        if (right.reader !== undefined && revoked.has(right.reader)) line.end()
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the keys of open streams could not be checked; they are checked again soon')
    }
  }
}
