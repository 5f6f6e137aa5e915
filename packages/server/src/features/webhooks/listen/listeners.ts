import { setImmediate as turn } from 'node:timers/promises'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { createPoller, type Poller, type Read } from '../../../platform/event-streams/poller.ts'
import { type EventStreamResponse, openingOf } from '../../../platform/event-streams/response.ts'
import { OpenStreams } from '../../../platform/event-streams/streams.ts'
import { memoryBudgets } from '../../../platform/memory-budgets.ts'
import type { EndedReaders, Reader } from '../../../platform/reader.ts'
import { frameOf, Listener, type Listening } from './listener.ts'
import { listPages, type Page } from './store.ts'

const streamsMax = 1_000
const lagBytesMax = memoryBudgets.listeners
/** Most streams of one key. */
const streamsOfKeyMax = 10
const retryAfterSeconds = 5

/** Most entries of a page, and the bytes of payloads with which a page ends: a read has the pages of many streams in memory. */
const pageBounds = { entriesMax: 100, bytesMax: 65_536 }
/** Most streams that one read serves, of one owner and in total, so that one owner's backlog does not delay the events of another. */
const streamsOfOwnerPerRead = 10
const streamsPerRead = 100
/** Entries that are signed before the event loop gets a turn. */
const entriesPerTurn = 20

export interface ListenersDeps extends Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'>, ServiceSealPort {
  readonly endedReaders: EndedReaders
}

/**
 * All event streams to listeners of this process. The table is the source: at most two statements read the events for all of them, new or
 * a month old (`platform/event-streams/poller.ts`).
 */
export class Listeners {
  readonly #deps: ListenersDeps
  readonly #open: OpenStreams<Listener>
  readonly #poller: Poller
  #reads = 0
  /** The first read of the current cycle; a cycle reads every ready stream at least once before the pause. */
  #cycleStart = 1
  #signed = 0

  constructor(deps: ListenersDeps) {
    this.#deps = deps
    const { log, metrics, endedReaders } = deps
    this.#open = new OpenStreams({
      ...{ log, metrics, endedReaders, streamsMax, lagBytesMax },
      gauges: {
        open: ['purser_listeners', 'Open streams of events to listeners.'],
        most: ['purser_listeners_max', 'Most streams of events to listeners that the process opens.'],
        largestShare: [
          'purser_listeners_largest_share',
          'Open streams of events to the listeners of the account that has the most.',
        ],
      },
      failure: 'the keys of listeners could not be checked; they are checked again soon',
    })
    this.#poller = createPoller({
      log,
      failure: 'events could not be read for listeners; retrying',
      isNeeded: () => this.#open.count > 0,
      readAll: () => this.#read(),
    })
  }

  get count(): number {
    return this.#open.count
  }

  /** Refuses if this process, one share owner, its test environment, or one key, has the most streams that it may. */
  refuseIfFull({
    owner,
    environment,
    reader,
  }: Pick<Listener, 'owner' | 'environment'> & { readonly reader: Reader }): void {
    this.#open.refuseIfFull(owner, environment)
    const ofKey = [...this.#open].filter((listener) => listener.owner === owner && listener.reader === reader)
    if (ofKey.length >= streamsOfKeyMax) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** Returns a response that sends the events after the position, and then new ones. */
  respond(listening: Listening): EventStreamResponse {
    return this.#open.respond({
      create: (line) => new Listener(listening, line),
      opened: ({ line }) => {
        line.write(openingOf(listening.position.id))
        this.wake()
      },
    })
  }

  /** Makes the table be read now, if anybody listens. Never throws. */
  wake(): void {
    if (this.#open.count > 0) this.#poller.pollAll()
  }

  /** Closes all streams; the server has ended the responses. */
  async stop(): Promise<void> {
    await Promise.all([this.#open.stop(), this.#poller.stop()])
  }

  /** Runs one tick of the timer. Never fails. */
  tick(): Promise<void> {
    return this.#open.tick()
  }

  async #read(): Promise<Read | undefined> {
    const ready = [...this.#open].filter(({ isReady }) => isReady)
    const chosen = nextRead(ready)
    const read = ++this.#reads
    for (const listener of chosen) listener.readIn = read
    const isMore = ready.some(({ readIn }) => readIn < this.#cycleStart)
    if (!isMore) this.#cycleStart = read + 1
    if (chosen.length === 0) return undefined
    const pages = await listPages(this.#deps.db, chosen, pageBounds)
    const send = async () => {
      for (const [index, listener] of chosen.entries()) {
        const page = pages[index]
        if (page !== undefined) await this.#send(listener, page)
      }
    }
    return { isMore, send }
  }

  /**
   * Sends what its reader accepts of a page, and reads on later. A page that cannot be sent is not skipped: the stream is
   * closed, and its client reconnects for it.
   */
  async #send(listener: Listener, page: Page): Promise<void> {
    const { line } = listener
    const past: Buffer[] = []
    listener.begin(page)
    try {
      for (const entry of page.entries) {
        if (!line.isOpen) return
        if (!listener.isReady) return this.#readOn(listener, past)
        const frame = await frameOf(this.#deps, listener, entry)
        line.write(frame)
        if (listener.isPast(entry.position)) past.push(frame)
        listener.position = entry.position
        if (++this.#signed % entriesPerTurn === 0) await turn()
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'an event could not be signed for a listener')
      return line.cut()
    }
    listener.position = page.next
    if (page.isFull) return this.#readOn(listener, past)
    void listener.payFor(past, page)
    if (!listener.follows) line.end()
  }

  /** Reads on when the reader has received what was sent, and its caller has paid for it. */
  #readOn(listener: Listener, past: readonly Buffer[]): void {
    const isPaid = listener.payFor(past, { isFull: true })
    void Promise.all([isPaid, listener.line.drained()]).then(() => this.wake())
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
