import { setImmediate as turn } from 'node:timers/promises'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { EventStreamResponse, type SseConnection } from '../../../platform/event-stream-response.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { EndedReaders, Reader } from '../../../platform/reader.ts'
import { mayTake } from '../../../platform/share.ts'
import { frameOf, Listener, type Listening, openingOf } from './listener.ts'
import { listPages, type Page } from './store.ts'

/** Most streams of one process, shared between their owners (`mayTake`, `placeOwner` of a call), and of one key among them. */
const streamsMax = 1_000
const streamsOfKeyMax = 10
const retryAfterSeconds = 5

/** How often the table is read for all listeners; events of other processes arrive with at most this delay. */
const pollMs = 200
/** After a slow read the pause is this many times its duration, so that reading never overloads the database. */
const pauseFactor = 4
const afterFailureMs = 2_000
const entriesMax = 100
/** Most streams that one read serves, of one owner and in total, so that one owner's backlog does not delay the events of another. */
const streamsOfOwnerPerRead = 10
const streamsPerRead = 100
/** Entries that are signed before the event loop gets a turn. */
const entriesPerTurn = 20

/**
 * How often keys are checked. Each stream has its heartbeat in one of fifteen such ticks, so that heartbeats never come all at
 * once.
 */
const beatMs = 1_000
const beatsPerHeartbeat = 15

export interface ListenersDeps extends Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>, ServiceSealPort {
  readonly endedReaders: EndedReaders
}

/**
 * All event streams to listeners of this process. The table is the source: at most two statements read the events for all of them, five
 * times a second and at once when this process wrote some (`wake`), new or a month old. Reads never overlap. Two timers serve all
 * streams and run while there are any.
 */
export class Listeners {
  readonly #deps: ListenersDeps
  readonly #gauge: ReturnType<Metrics['gauge']>
  readonly #open = new Map<Listener, number>()
  #opened = 0
  #beats = 0
  #beating: NodeJS.Timeout | undefined
  #pausing: NodeJS.Timeout | undefined
  #hasNews = false
  #rounds = 0
  /** The first round of the current cycle; a cycle reads every ready stream at least once before the pause. */
  #cycleStart = 1
  #signed = 0
  #running: Promise<void> | undefined
  #checking: Promise<void> | undefined

  constructor(deps: ListenersDeps) {
    this.#deps = deps
    this.#gauge = deps.metrics.gauge('purser_listeners', 'Open streams of events to listeners.')
    const { gauge } = deps.metrics
    gauge('purser_listeners_max', 'Most streams of events to listeners that the process opens.').set(streamsMax)
    const help = 'Open streams of events to the listeners of the account that has the most.'
    gauge('purser_listeners_largest_share', help, [], (shown) => shown.set(this.#largestShare()))
  }

  get count(): number {
    return this.#open.size
  }

  #largestShare(): number {
    const byOwner = Map.groupBy(this.#open.keys(), ({ owner }) => owner)
    return Math.max(0, ...[...byOwner.values()].map((own) => own.length))
  }

  /** Refuses if this process, one owner of places in it, or one key, has the most streams that it may. */
  refuseIfFull(owner: string, reader: Reader): void {
    const taken = this.#open.size
    if (taken >= streamsMax) throw failPlatform('service-unavailable', { retryAfterSeconds })
    const ofOwner = [...this.#open.keys()].filter((listener) => listener.owner === owner)
    const ofKey = ofOwner.filter((listener) => listener.reader === reader)
    if (ofKey.length >= streamsOfKeyMax || !mayTake({ own: ofOwner.length, taken, max: streamsMax }))
      throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** Returns a response that sends the events after the place, and then new ones. */
  answer(listening: Listening): EventStreamResponse {
    let listener: Listener | undefined
    const open = (line: SseConnection): void => {
      listener = new Listener(listening, line)
      line.write(openingOf(listening.place.id))
      this.#add(listener)
    }
    return new EventStreamResponse(open, () => {
      if (listener !== undefined) this.#remove(listener)
    })
  }

  /** Makes the table be read now, if anybody listens. Never throws. */
  wake(): void {
    if (this.#open.size === 0) return
    this.#hasNews = true
    this.#running ??= this.#run()
  }

  /** Closes all streams; the server has ended the responses. */
  async stop(): Promise<void> {
    clearInterval(this.#beating)
    clearTimeout(this.#pausing)
    for (const { line } of this.#open.keys()) line.end()
    this.#open.clear()
    await Promise.all([this.#running, this.#checking])
    clearTimeout(this.#pausing)
  }

  /** Runs one tick: heartbeats of the streams that are due, and the end of streams whose key was revoked. Never fails. */
  beat(): Promise<void> {
    this.#beats = (this.#beats + 1) % beatsPerHeartbeat
    for (const [listener, own] of this.#open) if (own === this.#beats) listener.beat()
    this.#checking ??= this.#endRevoked().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  #add(listener: Listener): void {
    this.#open.set(listener, this.#opened++ % beatsPerHeartbeat)
    this.#beating ??= setInterval(() => void this.beat(), beatMs).unref()
    this.#gauge.set(this.#open.size)
    this.wake()
  }

  #remove(listener: Listener): void {
    if (!this.#open.delete(listener)) return
    this.#gauge.set(this.#open.size)
    if (this.#open.size > 0) return
    clearInterval(this.#beating)
    this.#beating = undefined
  }

  async #run(): Promise<void> {
    // Wake-ups come in bursts, of one transaction or of many: they share a statement.
    await turn()
    let pauseMs = pollMs
    try {
      while (this.#hasNews) {
        this.#hasNews = false
        const began = performance.now()
        await this.#round()
        pauseMs = Math.max(pollMs, pauseFactor * (performance.now() - began))
      }
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'events could not be read for listeners; retrying')
      pauseMs = afterFailureMs
    }
    this.#running = undefined
    this.#pause(pauseMs)
  }

  #pause(ms: number): void {
    clearTimeout(this.#pausing)
    this.#pausing = this.#open.size === 0 ? undefined : setTimeout(() => this.wake(), ms).unref()
  }

  async #round(): Promise<void> {
    const ready = [...this.#open.keys()].filter(({ isReady }) => isReady)
    const chosen = nextRead(ready)
    const round = ++this.#rounds
    for (const listener of chosen) listener.readIn = round
    if (ready.some(({ readIn }) => readIn < this.#cycleStart)) this.#hasNews = true
    else this.#cycleStart = round + 1
    if (chosen.length === 0) return
    const pages = await listPages(this.#deps.db, chosen, entriesMax)
    for (const [index, listener] of chosen.entries()) {
      const page = pages[index]
      if (page !== undefined) await this.#send(listener, page)
    }
  }

  /** Sends a page. A page that cannot be sent is not skipped: the stream is closed, and its client reconnects for it. */
  async #send(listener: Listener, page: Page): Promise<void> {
    const { line } = listener
    try {
      for (const entry of page.entries) {
        if (!line.isOpen) return
        line.write(await frameOf(this.#deps, listener.secret, entry))
        if (++this.#signed % entriesPerTurn === 0) await turn()
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'an event could not be signed for a listener')
      return line.cut()
    }
    listener.place = page.next
    if (page.isFull) void line.drained().then(() => this.wake())
    else if (!listener.follows) line.end()
  }

  /** Ends the streams whose key was revoked since, by any process. */
  async #endRevoked(): Promise<void> {
    const keys = new Set([...this.#open.keys()].map((listener) => listener.reader))
    if (keys.size === 0) return
    try {
      const revoked = new Set(await this.#deps.endedReaders([...keys]))
      for (const { reader, line } of this.#open.keys()) if (revoked.has(reader)) line.end()
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the keys of listeners could not be checked; they are checked again soon')
    }
  }
}

/** Returns the streams that the next read serves: at most an equal number of each owner, least recently read first. */
function nextRead(ready: readonly Listener[]): readonly Listener[] {
  const byOwner = Map.groupBy(ready, ({ owner }) => owner)
  const share = Math.min(streamsOfOwnerPerRead, Math.max(1, Math.floor(streamsPerRead / byOwner.size)))
  return [...byOwner.values()]
    .map((own) => own.toSorted((left, right) => left.readIn - right.readIn).slice(0, share))
    .toSorted((left, right) => (left[0]?.readIn ?? 0) - (right[0]?.readIn ?? 0))
    .slice(0, streamsPerRead)
    .flat()
}
