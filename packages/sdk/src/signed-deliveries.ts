import { PurserError } from './errors.ts'
import { readEvents } from './event-stream.ts'
import { isRecord } from './problem.ts'
import { delayMsAfter, isPassing, jsonIn, textOf } from './reconnecting-stream.ts'
import { type CallOptions, type Open, pause } from './transport.ts'

export interface ListenQuery {
  /** Event types. Default: all. */
  readonly events?: string | readonly string[] | undefined
  /** ISO 8601. Starts after this time, as far back as events are kept. Default: now. */
  readonly from?: string | undefined
  /** Resumes after the delivery with this `id`, instead of `from`. */
  readonly lastEventId?: string | undefined
  /** With `false` the stream ends after the existing events. */
  readonly follow?: 'true' | 'false' | undefined
}

export interface ListenOptions extends CallOptions {
  /** Called each time the stream opens. */
  readonly onOpen?: (() => void) | undefined
  /** Called when the stream broke or could not be opened, before it is reopened. */
  readonly onBreak?: ((error: unknown) => void) | undefined
}

/** An event as a webhook would receive it, signed with the secret of `events.listener`. */
export interface SignedDelivery {
  /** The position in the stream. */
  readonly id: string
  readonly eventId: string
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  /** The raw body, to be forwarded unchanged. */
  readonly body: string
}

/** A delivery signed longer ago, by the service's clock, is requested again: receivers refuse it after 300 s. */
const ageSecondsMax = 60

/**
 * Yields the organisation's events in the order in which they were written. A delivery counts as handled when the
 * next one is requested. After a broken connection, the stream resumes after the last handled delivery, so the one in
 * progress is repeated and none is lost. A delivery whose signature has become too old is signed again. Throws
 * refusals of the service, such as for a revoked key.
 */
export async function* listen(
  open: Open,
  query: ListenQuery = {},
  options: ListenOptions = {},
): AsyncGenerator<SignedDelivery> {
  const place = { lastEventId: query.lastEventId, failures: 0 }
  while (true) {
    try {
      const response = await openAfter(open, { ...query, lastEventId: place.lastEventId }, options)
      if (response.status === 204 || response.body === null) return
      const ageOf = clockOf(response)
      let isReported = false
      for await (const { id, data } of readEvents(textOf(response.body, options.signal))) {
        // Called only when the starting position is known: from then on nothing can be missed.
        if (!isReported) options.onOpen?.()
        isReported = true
        if (data !== '') {
          const delivery = deliveryIn(id, data)
          if (ageOf(delivery) > ageSecondsMax) break
          yield delivery
        }
        Object.assign(place, { lastEventId: id, failures: 0 })
      }
      if (query.follow !== 'false') options.onBreak?.(undefined)
    } catch (error) {
      options.signal?.throwIfAborted()
      if (!isPassing(error)) throw error
      options.onBreak?.(error)
      const requestedMs = error instanceof PurserError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
      await pause(Math.max(requestedMs, delayMsAfter(place.failures++)), options.signal)
      continue
    }
    await pause(delayMsAfter(place.failures++), options.signal)
  }
}

function openAfter(open: Open, query: ListenQuery, options: ListenOptions): Promise<Response> {
  const { events, from, lastEventId, follow } = query
  const { onOpen: _, onBreak: __, ...call } = options
  const resumed = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const headers = { ...options.headers, ...resumed, accept: 'text/event-stream' }
  const requested = { events: events === undefined ? undefined : String(events), follow }
  const since = lastEventId === undefined ? { from } : {}
  return open('/events/stream', { ...call, headers, query: { ...requested, ...since }, maxRetries: 0 })
}

/**
 * The age of a delivery's signature in seconds. Uses the time of the service from the response, because the local
 * clock may be wrong.
 */
function clockOf(response: Response): (delivery: SignedDelivery) => number {
  const began = performance.now()
  const date = Date.parse(response.headers.get('date') ?? '')
  return ({ headers }) => (date + performance.now() - began) / 1_000 - Number(headers['webhook-timestamp'])
}

function deliveryIn(id: string, data: string): SignedDelivery {
  const sent = jsonIn(data)
  if (isRecord(sent) && isRecord(sent.headers)) {
    const { eventId, type, headers, body } = sent
    const signed = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    if (typeof eventId === 'string' && typeof type === 'string' && typeof body === 'string')
      return { id, eventId, type, headers: Object.fromEntries(signed), body }
  }
  throw new PurserError('The stream sent data that is not a delivery.', { code: 'unreadable-answer', status: 200 })
}
