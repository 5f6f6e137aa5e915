import type { Deps, Environment } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import type { EndedReaders, Reader } from '../reader.ts'
import { levelOf, mayTake, mayTakeForTest } from '../share.ts'
import { EventStreamResponse, heartbeat, type SseConnection } from './response.ts'

/**
 * Milliseconds between two checks of access. Each stream has its heartbeat in one of fifteen such ticks, so that heartbeats never come all at once.
 */
const tickMs = 1_000
const ticksPerHeartbeat = 15

/** Consecutive heartbeats without progress after which a reader counts as gone. */
const stallsMax = 2

const retryAfterSeconds = 5

/** One open stream: whose slot it takes, its access, and the connection to its reader. */
export class OpenStream {
  /** The account or organisation whose slot the stream takes. */
  readonly owner: string
  readonly environment: Environment
  /** The credential whose end ends the stream. */
  readonly reader: Reader | undefined
  readonly line: SseConnection
  #stalls = 0
  #waitingBefore = 0
  /** Bytes that its reader had not read at the last tick. */
  #waitingAtTick = 0

  constructor(
    { owner, environment, reader }: Pick<OpenStream, 'owner' | 'environment' | 'reader'>,
    line: SseConnection,
  ) {
    this.owner = owner
    this.environment = environment
    this.reader = reader
    this.line = line
  }

  /** Sends a heartbeat; closes a stream whose reader has stopped reading. */
  sendHeartbeat(): void {
    const { waiting } = this.line
    this.#stalls = waiting > 0 && waiting >= this.#waitingBefore ? this.#stalls + 1 : 0
    this.#waitingBefore = waiting
    if (this.#stalls > stallsMax) this.line.cut()
    else this.line.write(heartbeat)
  }

  /** Returns the bytes that its reader has not read since the last tick, or had not at that time: none for a reader that keeps up. */
  lag(): number {
    const { waiting } = this.line
    const lag = Math.min(waiting, this.#waitingAtTick)
    this.#waitingAtTick = waiting
    return lag
  }
}

export interface StreamsParts extends Pick<Deps, 'log' | 'metrics'> {
  readonly endedReaders: EndedReaders
  /** Most streams of one process, shared between their owners (`mayTake`, `shareOwner` of a call). Those of the test environment have half of a share. */
  readonly streamsMax: number
  /** Most bytes that wait for all slow readers of one process, shared between the owners of their slots. */
  readonly lagBytesMax: number
  /** Name and help text of the metrics: open streams, the most of them, and those of the owner that has the most. */
  readonly gauges: Readonly<Record<'open' | 'most' | 'largestShare', readonly [name: string, help: string]>>
  /** The log message of a failed check of access, which is repeated. */
  readonly failure: string
  /** Runs in each tick, after the heartbeats. */
  onTick?(): void
}

/** The steps of a stream, when the headers of its response are sent and when the response is closed. */
export interface StreamLife<Stream> {
  create(line: SseConnection): Stream
  opened(stream: Stream): void
  closed?(stream: Stream): void
}

/** Streams of one kind in this process, from their first byte to their last. One timer serves all of them; it runs while there are any. */
export class OpenStreams<Stream extends OpenStream> {
  readonly #parts: StreamsParts
  readonly #gauge: ReturnType<Metrics['gauge']>
  /** Each open stream with the tick of its heartbeat. */
  readonly #open = new Map<Stream, number>()
  readonly #ofOwner = new Map<string, number>()
  readonly #testOfOwner = new Map<string, number>()
  #opened = 0
  #ticks = 0
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined

  constructor(parts: StreamsParts) {
    this.#parts = parts
    const { metrics, gauges, streamsMax } = parts
    this.#gauge = metrics.gauge(...gauges.open)
    metrics.gauge(...gauges.most).set(streamsMax)
    metrics.gauge(...gauges.largestShare, [], (shown) => shown.set(Math.max(0, ...this.#ofOwner.values())))
  }

  /** The number of open streams. */
  get count(): number {
    return this.#open.size
  }

  /** Iterates over the open streams in the order in which they were opened. */
  [Symbol.iterator](): IterableIterator<Stream> {
    return this.#open.keys()
  }

  /** Refuses if this process, one share owner, or its test environment, has the most streams that it may. */
  refuseIfFull(owner: string, environment: Environment): void {
    const { streamsMax: max } = this.#parts
    const taken = this.#open.size
    if (taken >= max) throw failPlatform('service-unavailable', { retryAfterSeconds })
    const own = this.#ofOwner.get(owner) ?? 0
    const ownTest = this.#testOfOwner.get(owner) ?? 0
    const isFree = environment === 'test' ? mayTakeForTest({ own, ownTest, taken, max }) : mayTake({ own, taken, max })
    if (!isFree) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** Returns a response whose stream is one of these while it is open. */
  respond({ create, opened, closed }: StreamLife<Stream>): EventStreamResponse {
    let stream: Stream | undefined
    const open = (line: SseConnection): void => {
      stream = create(line)
      this.#add(stream)
      opened(stream)
    }
    return new EventStreamResponse(open, () => {
      if (stream !== undefined && this.#remove(stream)) closed?.(stream)
    })
  }

  /** Ends all streams; resolves when the current check of access has ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const { line } of this.#open.keys()) line.end()
    await this.#checking
  }

  /**
   * Runs one tick of the timer: heartbeats of the streams that are due, and the end of the slowest readers of an owner above its share of
   * the memory, and of streams whose access has ended. Never fails.
   */
  tick(): Promise<void> {
    this.#ticks = (this.#ticks + 1) % ticksPerHeartbeat
    for (const [stream, own] of this.#open) if (own === this.#ticks) stream.sendHeartbeat()
    this.#parts.onTick?.()
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
      this.#parts.lagBytesMax,
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

  /** The counts of open streams by owner that a stream is part of. */
  #countsOf({ environment }: Stream): readonly Map<string, number>[] {
    return environment === 'test' ? [this.#ofOwner, this.#testOfOwner] : [this.#ofOwner]
  }

  #add(stream: Stream): void {
    this.#open.set(stream, this.#opened++ % ticksPerHeartbeat)
    for (const counts of this.#countsOf(stream)) counts.set(stream.owner, (counts.get(stream.owner) ?? 0) + 1)
    this.#timer ??= setInterval(() => void this.tick(), tickMs).unref()
    this.#gauge.set(this.#open.size)
  }

  #remove(stream: Stream): boolean {
    if (!this.#open.delete(stream)) return false
    for (const counts of this.#countsOf(stream)) {
      const left = (counts.get(stream.owner) ?? 1) - 1
      if (left === 0) counts.delete(stream.owner)
      else counts.set(stream.owner, left)
    }
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    this.#gauge.set(this.#open.size)
    return true
  }

  /** Ends the streams whose key, session, token or ticket was revoked since, by any process. */
  async #endRevoked(): Promise<void> {
    const readers = new Set<Reader>()
    for (const { reader } of this.#open.keys()) if (reader !== undefined) readers.add(reader)
    if (readers.size === 0) return
    try {
      const ended = new Set(await this.#parts.endedReaders([...readers]))
      for (const { reader, line } of this.#open.keys()) if (reader !== undefined && ended.has(reader)) line.end()
    } catch (error) {
      this.#parts.log.warn({ err: error }, this.#parts.failure)
    }
  }
}
