import { fill } from './call.ts'
import { NotFoundError, PurserError } from './errors.ts'
import { readEvents } from './event-stream.ts'
import { delayMsAfter, isPassing, jsonIn, textOf } from './live-answer.ts'
import { isRecord } from './problem.ts'
import { type CallOptions, type Open, pause } from './transport.ts'
import type { VaultEvent } from './vault-records.ts'

export interface EventsQuery {
  /** ISO 8601: begins with what happened after that; with what happens from now on when left out. */
  readonly from?: string | undefined
  /** Begins strictly after this event, in place of `from`. */
  readonly lastEventId?: string | undefined
}

/**
 * What happens in a vault, in order, each event once: from where the query says, or from now on. A connection that
 * breaks is opened again after the last event that came, for as long as the caller goes on reading. Ends after `vault.sealed`,
 * and when the vault is gone; throws what the service refuses, such as a key that was revoked.
 */
export async function* vaultEvents(
  open: Open,
  vaultId: string,
  query: EventsQuery = {},
  options: CallOptions = {},
): AsyncGenerator<VaultEvent> {
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
        if (event.type === 'vault.sealed') return
      }
    } catch (error) {
      options.signal?.throwIfAborted()
      // A vault that was there is gone: it expired, or was deleted.
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
  throw new PurserError('The stream sent something that is no event.', { code: 'unreadable-answer', status: 200 })
}
