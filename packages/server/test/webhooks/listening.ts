import { createPurser, type ListenQuery, type SignedDelivery } from '../../../sdk/src/index.ts'

/** A listening program: the deliveries that it has received, in order. */
export interface Listening {
  readonly had: readonly SignedDelivery[]
  /** Resolves when the stream is open. */
  readonly opened: Promise<void>
  /** Resolves when this many have come. */
  until(count: number): Promise<readonly SignedDelivery[]>
  /** How it ended, if it was refused or ended by the service. */
  readonly ended: Promise<unknown>
  readonly breaks: () => number
  stop(): Promise<void>
}

/** Listens with the client, as the command line does. */
export function listening(baseUrl: string, apiKey: string, query: ListenQuery = {}): Listening {
  const had: SignedDelivery[] = []
  const stopping = new AbortController()
  const opened = Promise.withResolvers<void>()
  let changed = Promise.withResolvers<void>()
  let breaks = 0
  const run = async (): Promise<unknown> => {
    const options = { signal: stopping.signal, onOpen: opened.resolve, onBreak: () => (breaks += 1) }
    try {
      for await (const delivery of createPurser({ apiKey, baseUrl }).events.stream(query, options)) {
        had.push(delivery)
        changed.resolve()
        changed = Promise.withResolvers()
      }
      return undefined
    } catch (error) {
      return error
    }
  }
  const ended = run()
  return {
    had,
    opened: opened.promise,
    ended,
    breaks: () => breaks,
    async until(count) {
      const over = ended.then((how) => ({ how }))
      while (had.length < count) {
        const end = await Promise.race([changed.promise, over])
        if (end !== undefined && had.length < count) throw new Error(`it ended after ${had.length}: ${end.how}`)
      }
      return had
    },
    async stop() {
      stopping.abort()
      await ended
    },
  }
}
