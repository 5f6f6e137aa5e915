import { fill } from './call.ts'
import { mustKnow } from './check.ts'
import { NotFoundError, PurserError } from './errors.ts'
import { readEvents } from './event-stream.ts'
import { isRecord } from './problem.ts'
import { delayMsAfter, isPassing, jsonIn, textOf } from './reconnecting-stream.ts'
import { type CallOptions, type Open, pause } from './transport.ts'
import type { VaultEvent } from './vault-records.ts'

export interface EventsQuery {
  /** ISO 8601. Starts after this time. Default: now, and the first event of a sealed vault. */
  readonly from?: string | undefined
  /** Starts after this event, instead of `from`. */
  readonly lastEventId?: string | undefined
}

/**
 * Yields the events of a vault in order, each once, from the position in the query. Without a position it begins now,
 * and for a sealed vault with the first event. A broken connection is reopened after the last received event while the
 * caller keeps reading. Ends after `vault.sealed` or `vault.expired`, and when the vault no longer exists. Throws
 * refusals of the service, such as for a revoked key.
 */
export async function* vaultEvents(
  open: Open,
  vaultId: string,
  query: EventsQuery = {},
  options: CallOptions = {},
): AsyncGenerator<VaultEvent> {
  mustKnow(query, { from: true, lastEventId: true }, 'The query')
  const place = { lastEventId: query.lastEventId, isBegun: false, failures: 0 }
  while (true) {
    try {
      const response = await openAfter(open, vaultId, { ...query, lastEventId: place.lastEventId }, options)
      place.isBegun = true
      if (response.status === 204 || response.body === null) return
      for await (const { id, data } of readEvents(textOf(response.body, options.signal))) {
        Object.assign(place, { lastEventId: id === '' ? place.lastEventId : id, failures: 0 })
        if (data === '') continue
        const event = eventIn(data)
        yield event
        if (event.type === 'vault.sealed' || event.type === 'vault.expired') return
      }
    } catch (error) {
      options.signal?.throwIfAborted()
      // The vault existed and no longer does: it expired or was deleted.
      if (place.isBegun && error instanceof NotFoundError) return
      if (!isPassing(error)) throw error
    }
    await pause(delayMsAfter(place.failures++), options.signal)
  }
}

function openAfter(
  open: Open,
  vaultId: string,
  { from, lastEventId }: EventsQuery,
  options: CallOptions,
): Promise<Response> {
  const resumed = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const headers = { ...options.headers, ...resumed, accept: 'text/event-stream' }
  const query = lastEventId === undefined ? { from } : {}
  return open(fill('/vaults/{id}/events', { id: vaultId }), { ...options, headers, query, maxRetries: 0 })
}

function eventIn(data: string): VaultEvent {
  const event = jsonIn(data)
  if (isRecord(event)) {
    const { eventId, type, vaultId, timestamp, payload } = event
    const isWhole = [eventId, type, vaultId, timestamp].every((member) => typeof member === 'string')
    if (isWhole && isRecord(payload)) {
      return {
        eventId: String(eventId),
        type: String(type),
        vaultId: String(vaultId),
        timestamp: String(timestamp),
        payload,
      }
    }
  }
  throw new PurserError('The stream sent data that is not an event.', { code: 'unreadable-answer', status: 200 })
}
