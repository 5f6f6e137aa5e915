import { PurserError } from './errors.ts'
import { readEvents } from './event-stream.ts'
import { delayMsAfter, isPassing, jsonIn, textOf } from './live-answer.ts'
import { isRecord } from './problem.ts'
import { type CallOptions, type Open, pause } from './transport.ts'

export interface ListenQuery {
  /** Event types; all when left out. */
  readonly events?: string | readonly string[] | undefined
  /** ISO 8601: begins with what happened after that and is kept still; with what happens from now on when left out. */
  readonly from?: string | undefined
  /** Goes on strictly after the delivery with this `id`, in place of `from`. */
  readonly lastEventId?: string | undefined
  /** With `false` it ends with what there is. */
  readonly follow?: 'true' | 'false' | undefined
}

export interface ListenOptions extends CallOptions {
  /** Told each time that the stream is open. */
  readonly onOpen?: (() => void) | undefined
  /** Told when the stream broke or could not be opened, before it is opened anew. */
  readonly onBreak?: ((error: unknown) => void) | undefined
}

/** An event as a webhook would get it at the moment of sending, signed with the secret of `events.listener`. */
export interface SignedDelivery {
  /** The place in the stream. */
  readonly id: string
  readonly eventId: string
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  /** The raw body, to be passed on as it is. */
  readonly body: string
}

/** What was signed longer ago, by the service's own clock, is asked for anew: a receiver refuses it after 300 s. */
const ageSecondsMax = 60

/**
 * The organisation's events, in the order in which they were written. A delivery counts as had when the next is asked for: a connection
 * that breaks is opened again after the last one that was, so that what the caller was busy with comes again and nothing is left out. A
 * delivery that waited until its signature grew old is signed anew. Throws what the service refuses, such as a key that was revoked.
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
      let isTold = false
      for await (const { id, data } of readEvents(textOf(response.body, options.signal))) {
        // Not before the place is known at which it begins: from then on nothing can be missed.
        if (!isTold) options.onOpen?.()
        isTold = true
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
      const askedMs = error instanceof PurserError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
      await pause(Math.max(askedMs, delayMsAfter(place.failures++)), options.signal)
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
  const asked = { events: events === undefined ? undefined : String(events), follow }
  const since = lastEventId === undefined ? { from } : {}
  return open('/events/stream', { ...call, headers, query: { ...asked, ...since }, maxRetries: 0 })
}

/** How many seconds ago a delivery was signed. The clock here may be wrong; what the answer says is the time of the service. */
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
  throw new PurserError('The stream sent something that is no delivery.', { code: 'unreadable-answer', status: 200 })
}
