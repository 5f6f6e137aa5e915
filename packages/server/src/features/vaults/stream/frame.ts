import type { VaultId } from '../schema.ts'
import type { EventRow } from './store.ts'

/** An event of a stream as its bytes on the wire, encoded once for all streams. */
export interface Frame {
  readonly sequence: number
  readonly bytes: Buffer
  /** Whether it is the last event of the stream. */
  readonly isLast: boolean
}

/**
 * Encodes an event for the stream. It has no event name, so that `onmessage` receives it. JSON has no raw line break, so one
 * `data` line contains any payload. The payload stays the text that is stored, which nothing needs to parse.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 */
export function frameOf(vaultId: VaultId, row: EventRow): Frame {
  const { id: eventId, type, createdAt, payload, sequence } = row
  const head = JSON.stringify({ eventId, type, vaultId, timestamp: createdAt.toISOString() })
  const data = `${head.slice(0, -1)},"payload":${payload}}`
  return { sequence, bytes: Buffer.from(`id: ${eventId}\ndata: ${data}\n\n`), isLast: type === 'vault.sealed' }
}
