import { createHash } from 'node:crypto'
import { newId } from '../../../platform/ids.ts'
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
  return { sequence: row.sequence, bytes: encoded(vaultId, row), isLast: row.type === 'vault.sealed' }
}

/**
 * Encodes `vault.expired`, the last event of a stream that is open when its vault expires. No row contains it, since the vault's rows end with the
 * vault: its id follows from the vault and the instant, so that every stream of every process sends the same event.
 */
export function expiryFrameOf(vaultId: VaultId, expiredAt: Date): Buffer {
  const digest = createHash('sha256').update(`vault.expired ${vaultId}`).digest()
  const id = newId('evt', {
    clock: { now: () => expiredAt },
    random: { bytes: (length) => digest.subarray(0, length) },
  })
  const payload = JSON.stringify({ expiredAt: expiredAt.toISOString() })
  return encoded(vaultId, { id, type: 'vault.expired', payload, createdAt: expiredAt })
}

function encoded(vaultId: VaultId, { id: eventId, type, createdAt, payload }: Omit<EventRow, 'sequence'>): Buffer {
  const head = JSON.stringify({ eventId, type, vaultId, timestamp: createdAt.toISOString() })
  return Buffer.from(`id: ${eventId}\ndata: ${head.slice(0, -1)},"payload":${payload}}\n\n`)
}
