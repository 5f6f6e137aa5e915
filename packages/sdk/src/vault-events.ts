import { fill } from './call.ts'
import { NotFoundError, PurserError } from './errors.ts'
import { readEvents } from './event-stream.ts'
import { chunksOf } from './multipart.ts'
import { isRecord } from './problem.ts'
import { mayRetry } from './retry.ts'
import { type CallOptions, type Open, pause } from './transport.ts'
import type { VaultEvent } from './vault-records.ts'

export interface EventsQuery {
  /** ISO 8601: begins with what happened after that; with what happens from now on when left out. */
  readonly from?: string | undefined
  /** Begins strictly after this event, in place of `from`. */
  readonly lastEventId?: string | undefined
}

const delayMsFirst = 250
const delayMsMax = 15_000
/** The server sends something every 15 s; silence for longer than this means that the connection is dead. */
const silenceMsMax = 45_000

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

/** Up to a quarter less by chance, so that those who were cut off together do not return together. */
function delayMsAfter(failures: number): number {
  return Math.min(delayMsFirst * 2 ** failures, delayMsMax) * (1 - Math.random() / 4)
}

/** A broken connection, and an answer that is worth asking for again. */
function isPassing(error: unknown): boolean {
  return error instanceof BrokenStream || (error instanceof PurserError && mayRetry(error))
}

class BrokenStream extends Error {}

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

/** The stream's text; a connection that breaks, or keeps silent for too long, is a `BrokenStream`. */
async function* textOf(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const chunks = chunksOf(body)
  try {
    while (true) {
      const { done, value } = await beforeSilence(chunks.next(), signal)
      if (done === true) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    body.cancel().catch(() => {})
    chunks.return(undefined).catch(() => {})
  }
}

async function beforeSilence<T>(next: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const over = new AbortController()
  const ended = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal])
  const silence = pause(silenceMsMax, ended).then(() => Promise.reject(new BrokenStream()))
  try {
    return await Promise.race([next, silence])
  } catch (error) {
    signal?.throwIfAborted()
    throw error instanceof BrokenStream ? error : new BrokenStream()
  } finally {
    silence.catch(() => {})
    next.catch(() => {})
    over.abort()
  }
}

function eventIn(data: string): VaultEvent {
  const event = parsed(data)
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

function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
