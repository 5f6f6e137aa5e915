/** An open response that is written in parts. Every call on a closed one does nothing. */
export interface SseConnection {
  /** Bytes that were written and that the caller has not read yet, without those in the operating system's buffers. */
  readonly waiting: number
  readonly isOpen: boolean
  /** Writes immediately, whatever waits: the writer must check `waiting`, or a caller that does not read fills the memory. */
  write(bytes: Uint8Array): void
  /** Resolves when the caller has read the waiting data, or the response is closed. */
  drained(): Promise<void>
  /** Ends the response after the written data; a caller that does not read that within half a minute is cut. */
  end(): void
  /** Cuts the response; waiting data is dropped. */
  cut(): void
}

/**
 * The body of a response that continues while both sides stay connected: `open` gets the response once the headers are sent, `closed` is
 * called once, by the end of either side. Ten thousand of them cost far less than ten thousand node streams, and the server ends all of them when it
 * stops.
 */
export class EventStreamResponse {
  readonly open: (line: SseConnection) => void
  readonly closed: () => void

  constructor(open: (line: SseConnection) => void, closed: () => void) {
    this.open = open
    this.closed = closed
  }
}

/** Headers of every response with server-sent events. */
export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A proxy that compresses or buffers the response would delay events.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
}

/** Reconnection delay that a stream sends to its client. */
const retryMs = 2_000

/**
 * Returns the start of a stream: the reconnection delay, and the id after which it starts. A client stores that id although no event
 * comes with it, so that a client that disconnects before the first event misses nothing.
 */
export function openingOf(lastId: string | undefined): Buffer {
  return Buffer.from(`retry: ${retryMs}\n${lastId === undefined ? '' : `id: ${lastId}\n`}\n`)
}

/** A comment that keeps proxies from closing an idle connection. */
export const heartbeat: Buffer = Buffer.from(':\n\n')
