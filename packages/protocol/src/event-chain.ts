import { bytesToHex } from './bytes.ts'
import { canonicalJson } from './canonical-json.ts'
import { sha256 } from './hash.ts'
import { utf8 } from './utf8.ts'
import type { JsonObject } from './x402/messages.ts'

/** The state of an event stream: the number of events, and the hash over all of them in order. */
export type EventsHead = { readonly count: number; readonly hash: string }

/** The head of an empty stream: 32 zero bytes in hex. */
export const noEvents: EventsHead = { count: 0, hash: '0'.repeat(64) }

const hashPattern = /^[0-9a-f]{64}$/

/**
 * Returns the hash of an event in its stream: SHA-256, in lower-case hex, of the canonical JSON (RFC 8785) of `{ event,
 * previous }`. `event` is the whole object that the stream sends as data. `previous` is the hash of the event before
 * it, or `noEvents.hash` for the first event. Changing, removing, duplicating or moving an event changes every hash
 * after it. Throws a `RangeError` for a `previous` that is not 64 hex digits, and a `TypeError` for an event that JSON
 * cannot represent.
 *
 * @example
 * eventHash(noEvents.hash, { type: 'vault.created' }) // 'f6745448e9b9695be42eac5df7bd1c5bef2e7d7fda651b00228b4dd56b980e8b'
 */
export function eventHash(previous: string, event: JsonObject): string {
  if (!hashPattern.test(previous)) throw new RangeError('a link of the event chain is 64 hex digits')
  return bytesToHex(sha256(utf8(canonicalJson({ event, previous })))).slice(2)
}

/**
 * Returns the head after these events, in this order, starting from `before`. Throws as `eventHash` does.
 *
 * @example
 * eventsHeadOf([{ type: 'vault.created' }]).count // 1
 */
export function eventsHeadOf(events: Iterable<JsonObject>, before: EventsHead = noEvents): EventsHead {
  let { count, hash } = before
  for (const event of events) {
    count += 1
    hash = eventHash(hash, event)
  }
  return { count, hash }
}
