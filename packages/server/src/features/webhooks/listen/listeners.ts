import { setImmediate as turn } from 'node:timers/promises'
import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { ApiKeyId } from '../../../platform/ids.ts'
import { type Line, Live } from '../../../platform/live.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { frameOf, openingOf } from './frame.ts'
import { Listener, type Listening } from './listener.ts'
import { listPages, type Page } from './store.ts'

/** Streams that one process holds open, and those of one key among them. */
const streamsMax = 1_000
const streamsOfKeyMax = 10
const retryAfterSeconds = 5

/** How often the table is read for all listeners: what other processes wrote is told that much later at most. */
const roundMs = 200
/** A round that is slow is followed by a pause of so many times its length, so that reading never takes the database over. */
const pauseFactor = 4
const afterFailureMs = 2_000
const entriesMax = 100

/** How often keys are looked at. Each stream has its heartbeat in one of fifteen such beats, so that they never come all at once. */
const beatMs = 1_000
const beatsPerHeartbeat = 15

export interface ListenersDeps extends Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'serviceSeal'> {
  /** Which of these keys take no calls any more. */
  readonly revokedKeys: (apiKeyIds: readonly ApiKeyId[]) => Promise<readonly ApiKeyId[]>
}

/**
 * Every stream of events to listeners of this process. The table is the truth: one statement reads what there is for all of them,
 * five times a second and at once when this process wrote some (`wake`), whether it happened just now or a month ago. Rounds never
 * overlap. Two timers serve all streams and run while there are any.
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
  #running: Promise<void> | undefined
  #checking: Promise<void> | undefined

  constructor(deps: ListenersDeps) {
    this.#deps = deps
    this.#gauge = deps.metrics.gauge('purser_listeners', 'Open streams of events to listeners.')
  }

  get count(): number {
    return this.#open.size
  }

  /** Refuses where this process, or one key in it, has as many streams as it may. */
  refuseIfFull(apiKeyId: ApiKeyId): void {
    if (this.#open.size >= streamsMax) throw failPlatform('service-unavailable', { retryAfterSeconds })
    const ofKey = [...this.#open.keys()].filter((listener) => listener.apiKeyId === apiKeyId)
    if (ofKey.length >= streamsOfKeyMax) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** An answer that tells what there is after the place, and then goes on live. */
  answer(listening: Listening): Live {
    let listener: Listener | undefined
    const open = (line: Line): void => {
      listener = new Listener(listening, line)
      line.write(openingOf(listening.place.id))
      this.#add(listener)
    }
    return new Live(open, () => {
      if (listener !== undefined) this.#remove(listener)
    })
  }

  /** Has the table read now, where anybody listens. Never throws. */
  wake(): void {
    if (this.#open.size === 0) return
    this.#hasNews = true
    this.#running ??= this.#run()
  }

  /** Lets go of all; the server has ended the answers themselves. */
  async stop(): Promise<void> {
    clearInterval(this.#beating)
    clearTimeout(this.#pausing)
    for (const { line } of this.#open.keys()) line.end()
    this.#open.clear()
    await Promise.all([this.#running, this.#checking])
    clearTimeout(this.#pausing)
  }

  /** One beat: heartbeats of those whose turn it is, and the end of those whose key was revoked. Never fails. */
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
    // What wakes it comes in bursts, of one transaction or of many: they share a statement.
    await turn()
    let pauseMs = roundMs
    try {
      while (this.#hasNews) {
        this.#hasNews = false
        const began = performance.now()
        await this.#round()
        pauseMs = Math.max(roundMs, pauseFactor * (performance.now() - began))
      }
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'events could not be read for listeners; they are read again soon')
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
    if (ready.length === 0) return
    const pages = await listPages(this.#deps.db, ready, entriesMax)
    for (const [index, listener] of ready.entries()) {
      const page = pages[index]
      if (page !== undefined) await this.#tell(listener, page)
    }
  }

  /** A page that cannot be told is not passed over: the stream is cut, and its client comes back for it. */
  async #tell(listener: Listener, page: Page): Promise<void> {
    const { line } = listener
    try {
      for (const entry of page.entries) {
        if (!line.isOpen) return
        line.write(await frameOf(this.#deps, listener.secret, entry))
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'an event could not be signed for a listener')
      return line.cut()
    }
    listener.place = page.next
    if (page.isFull) void line.drained().then(() => this.wake())
    else if (!listener.follows) line.end()
  }

  /** Ends the streams whose key was revoked meanwhile, wherever it was. */
  async #endRevoked(): Promise<void> {
    const keys = new Set([...this.#open.keys()].map(({ apiKeyId }) => apiKeyId))
    if (keys.size === 0) return
    try {
      const revoked = new Set(await this.#deps.revokedKeys([...keys]))
      for (const { apiKeyId, line } of this.#open.keys()) if (revoked.has(apiKeyId)) line.end()
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the keys of listeners could not be looked at; they are looked at again soon')
    }
  }
}
