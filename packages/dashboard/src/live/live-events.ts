import type { Purser } from '@purser/sdk'

export type LiveStatus = 'connecting' | 'live' | 'reconnecting' | 'off'

/** An event as it came over the stream; the payload is what a webhook would get. */
export interface LiveEvent {
  readonly id: string
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

type Listener = (events: readonly LiveEvent[]) => void

/** How long events are collected before the page takes them: a thousand a second are ten changes of the page. */
const batchMs = 100
/** More than these at once say only that much has changed. */
const batchEventsMax = 1_000

/**
 * The events of one organisation and environment, as they happen. One stream serves the whole page; it opens with the first listener
 * and, when it breaks, goes on after the last event that came. What came is handed out in batches.
 */
export class LiveEvents {
  readonly #purser: Purser
  readonly #listeners = new Set<Listener>()
  readonly #statusListeners = new Set<() => void>()
  #status: LiveStatus = 'connecting'
  #batch: LiveEvent[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #stop: AbortController | undefined

  constructor(purser: Purser) {
    this.#purser = purser
  }

  get status(): LiveStatus {
    return this.#status
  }

  /** Hands each batch to the listener until the function that is answered is called. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#stop === undefined) void this.#run()
    return () => this.#listeners.delete(listener)
  }

  onStatus(listener: () => void): () => void {
    this.#statusListeners.add(listener)
    return () => this.#statusListeners.delete(listener)
  }

  /** Opens the stream again where the service had refused it. */
  retry(): void {
    if (this.#status === 'off') void this.#run()
  }

  close(): void {
    this.#stop?.abort()
    this.#stop = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  async #run(): Promise<void> {
    this.#stop = new AbortController()
    const { signal } = this.#stop
    this.#setStatus('connecting')
    const options = {
      signal,
      onOpen: () => this.#setStatus('live'),
      onBreak: () => this.#setStatus('reconnecting'),
    }
    try {
      for await (const { eventId, type, body } of this.#purser.events.stream({}, options))
        this.#add({ id: eventId, type, payload: payloadOf(body) })
    } catch {
      if (!signal.aborted) this.#setStatus('off')
    }
  }

  #add(event: LiveEvent): void {
    if (this.#batch.length < batchEventsMax) this.#batch.push(event)
    this.#timer ??= setTimeout(() => this.#flush(), batchMs)
  }

  #flush(): void {
    this.#timer = undefined
    const batch = this.#batch
    this.#batch = []
    for (const listener of this.#listeners) listener(batch)
  }

  #setStatus(status: LiveStatus): void {
    this.#status = status
    for (const listener of this.#statusListeners) listener()
  }
}

function payloadOf(body: string): LiveEvent['payload'] {
  const sent: unknown = JSON.parse(body)
  if (typeof sent !== 'object' || sent === null || !('payload' in sent)) return {}
  const { payload } = sent
  return typeof payload === 'object' && payload !== null ? { ...payload } : {}
}
