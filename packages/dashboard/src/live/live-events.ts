import type { Purser } from '@purser/sdk'

export type LiveStatus = 'connecting' | 'live' | 'reconnecting' | 'off'

/** An event of the stream, with the payload that a webhook receives. */
export interface LiveEvent {
  readonly id: string
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
}

type Listener = (events: readonly LiveEvent[]) => void

/** Events are collected this long before the page is updated, so that it renders at most ten times a second. */
const batchMs = 100
/** Further events of a batch are dropped. */
const batchEventsMax = 1_000

/**
 * The events of one organisation and environment, as they happen. One stream serves the whole page; it opens with the
 * first listener and resumes after the last received event when it breaks. Events are delivered in batches.
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

  /** Passes each batch to the listener. Returns a function that removes the listener. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    if (this.#stop === undefined) void this.#run()
    return () => this.#listeners.delete(listener)
  }

  onStatus(listener: () => void): () => void {
    this.#statusListeners.add(listener)
    return () => this.#statusListeners.delete(listener)
  }

  /** Opens the stream again after the service refused it. */
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
