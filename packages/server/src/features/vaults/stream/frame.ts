import type { Id } from '../../../platform/ids.ts'
import type { VaultId } from '../vault.ts'
import type { EventRow } from './store.ts'

/** An event of a stream as its bytes on the wire, made once however many streams it goes to. */
export interface Frame {
  readonly sequence: number
  readonly bytes: Buffer
  /** Nothing follows it. */
  readonly isLast: boolean
}

/** Longest wait before a client connects again, as the stream tells it. */
const retryMs = 2_000

/**
 * An event as the stream sends it: unnamed, so that `onmessage` sees it. JSON has no raw line break, so one `data` line
 * holds any payload.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export function frameOf(vaultId: VaultId, row: EventRow): Frame {
  const { id: eventId, type, createdAt, payload, sequence } = row
  const data = JSON.stringify({ eventId, type, vaultId, timestamp: createdAt.toISOString(), payload })
  return { sequence, bytes: Buffer.from(`id: ${eventId}\ndata: ${data}\n\n`), isLast: type === 'vault.sealed' }
}

/**
 * What a stream begins with: how soon to come back, and after which event it starts. A client remembers that id although
 * no event comes with it, so that one that loses its connection before the first event misses nothing either.
 */
export function openingOf(lastEventId: Id<'evt'> | undefined): Buffer {
  return Buffer.from(`retry: ${retryMs}\n${lastEventId === undefined ? '' : `id: ${lastEventId}\n`}\n`)
}

/** A comment: it keeps proxies from closing a quiet connection. */
export const heartbeat: Buffer = Buffer.from(':\n\n')
