import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { readEvents, type StreamedEvent } from '../src/event-stream.ts'
import { AuthenticationError, createPurser, NotFoundError, type VaultEvent } from '../src/index.ts'
import { vaultEvents } from '../src/vault-events.ts'
import { apiKey } from './fake-purser.ts'
import { serve } from './pay-stage.ts'

afterEach(() => {
  vi.useRealTimers()
})

function eventNumber(number: number, type = 'progress'): VaultEvent {
  const timestamp = new Date(Date.UTC(2026, 10, 21, 12, 0, number)).toISOString()
  return { eventId: `evt_${number}`, type, vaultId: 'vlt_1', timestamp, payload: { number } }
}

function written(event: VaultEvent): string {
  return `id: ${event.eventId}\ndata: ${JSON.stringify(event)}\n\n`
}

/** A vault of five events, the last of them its seal. */
const history = [1, 2, 3, 4].map((number) => eventNumber(number)).concat(eventNumber(5, 'vault.sealed'))

type Answer = (res: ServerResponse, rest: readonly VaultEvent[]) => void

/** A stream as the service has it: what comes after `Last-Event-ID`; each connection is answered in its own way, then in the last. */
async function aStream(...answers: Answer[]) {
  const requested: IncomingMessage[] = []
  const baseUrl = await serve((req, res) => {
    requested.push(req)
    const after = history.findIndex(({ eventId }) => eventId === req.headers['last-event-id'])
    const response = answers.length > 1 ? answers.shift() : answers[0]
    response?.(res, history.slice(after + 1))
  })
  const { vaults } = createPurser({ apiKey, baseUrl, retry: { delayMsFirst: 1 } })
  return { requested, vaults }
}

function begin(res: ServerResponse, text: string): ServerResponse {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(text)
  return res
}

const whole: Answer = (res, rest) => void begin(res, `: hello\n\n${rest.map(written).join('')}`)

function problem(status: number, code: string): Answer {
  const record = JSON.stringify({ type: `http://purser.test/problems/${code}`, title: code, status, detail: code })
  return (res) => void res.writeHead(status).end(record)
}

async function all(events: AsyncIterable<VaultEvent>): Promise<VaultEvent[]> {
  const seen: VaultEvent[] = []
  for await (const event of events) seen.push(event)
  return seen
}

test('a vault is watched from its first event to its seal, and the iteration ends there by itself', async () => {
  const { requested, vaults } = await aStream(whole)
  expect(await all(vaults.events('vlt_1', { from: '2026-11-21T00:00:00Z' }))).toEqual(history)
  expect(requested.map(({ url }) => url)).toEqual(['/vaults/vlt_1/events?from=2026-11-21T00%3A00%3A00Z'])
  expect(requested[0]?.headers).toMatchObject({ accept: 'text/event-stream', authorization: `Bearer ${apiKey}` })
})

test.each([1, 2, 3, 4])(
  'a connection that breaks after event %i is opened again there: no gap, no repeat',
  async (count) => {
    const some: Answer = (res, rest) => {
      // Half of the next event is on its way, too.
      const half = rest[count] === undefined ? '' : written(rest[count]).slice(0, 30)
      begin(res, rest.slice(0, count).map(written).join('') + half).end()
    }
    const { requested, vaults } = await aStream(some, whole)
    expect(await all(vaults.events('vlt_1', { from: '2026-11-21T00:00:00Z' }))).toEqual(history)
    expect(requested[1]?.headers['last-event-id']).toBe(`evt_${count}`)
    expect(requested[1]?.url).toBe('/vaults/vlt_1/events')
  },
)

test('a vault that expires while it is watched ends the iteration with that event, without another connection', async () => {
  const expired = eventNumber(2, 'vault.expired')
  const { requested, vaults } = await aStream((res) => void begin(res, [eventNumber(1), expired].map(written).join('')))
  expect(await all(vaults.events('vlt_1'))).toEqual([eventNumber(1), expired])
  expect(requested).toHaveLength(1)
})

test('a connection that is reset, and a service that is away for a while, are outlasted', async () => {
  const reset: Answer = (res) => void begin(res, written(eventNumber(1))).socket?.destroySoon()
  const { vaults } = await aStream(
    reset,
    problem(503, 'service-unavailable'),
    (res) => void res.socket?.destroy(),
    whole,
  )
  expect(await all(vaults.events('vlt_1'))).toEqual(history)
})

test('a place that the service names before the first event is where a broken connection goes on', async () => {
  const { requested, vaults } = await aStream((res) => void begin(res, 'id: evt_2\n\n').end(), whole)
  expect(await all(vaults.events('vlt_1'))).toEqual(history.slice(2))
  expect(requested.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'evt_2'])
})

test('a vault that is sealed, and seen to its end, ends without an event', async () => {
  const { vaults } = await aStream((res) => void res.writeHead(204).end())
  expect(await all(vaults.events('vlt_1', { lastEventId: 'evt_5' }))).toEqual([])
})

test('a vault that goes while it is watched ends the iteration; one that was never there is an error', async () => {
  const first: Answer = (res) => void begin(res, written(eventNumber(1))).end()
  const gone = await aStream(first, problem(404, 'vault-not-found'))
  expect(await all(gone.vaults.events('vlt_1'))).toEqual([eventNumber(1)])
  const never = await aStream(problem(404, 'vault-not-found'))
  await expect(all(never.vaults.events('vlt_1'))).rejects.toBeInstanceOf(NotFoundError)
})

test('a key that is revoked meanwhile is an error', async () => {
  const first: Answer = (res) => void begin(res, written(eventNumber(1))).end()
  const { vaults } = await aStream(first, problem(401, 'unauthorized'))
  await expect(all(vaults.events('vlt_1'))).rejects.toBeInstanceOf(AuthenticationError)
})

test('breaking off the loop closes the connection', async () => {
  const { requested, vaults } = await aStream(whole)
  for await (const event of vaults.events('vlt_1')) {
    expect(event).toEqual(eventNumber(1))
    break
  }
  await expect.poll(() => requested[0]?.socket.destroyed).toBe(true)
})

test.each(['before the answer', 'in the stream', 'between two connections'])(
  'a signal ends the watching %s with its reason',
  async (moment) => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const quiet: Answer = (res) => {
      if (moment !== 'before the answer') begin(res, written(eventNumber(1)))
      if (moment === 'between two connections') res.end()
      else setImmediate(() => controller.abort(reason))
    }
    const { vaults } = await aStream(quiet, (res) => void res)
    const watching = (async () => {
      for await (const _event of vaults.events('vlt_1', {}, { signal: controller.signal })) {
        if (moment === 'between two connections') setImmediate(() => controller.abort(reason))
      }
    })()
    await expect(watching).rejects.toBe(reason)
  },
)

test.each(['not json', '[]', '{"eventId":"evt_1"}', JSON.stringify({ ...eventNumber(1), payload: 7 })])(
  'data that is not an event is an error and not requested again: %s',
  async (data) => {
    const { requested, vaults } = await aStream((res) => void begin(res, `id: evt_1\ndata: ${data}\n\n`))
    await expect(all(vaults.events('vlt_1'))).rejects.toMatchObject({ code: 'unreadable-answer' })
    expect(requested).toHaveLength(1)
  },
)

test('a connection that keeps silent for 45 s is given up and opened again after the last event', async () => {
  vi.useFakeTimers()
  const requested: (string | undefined)[] = []
  const open = async (
    _path: string,
    options: { readonly headers?: Readonly<Record<string, string>> | undefined } = {},
  ) => {
    requested.push(options.headers?.['last-event-id'])
    const text = requested.length === 1 ? written(eventNumber(1)) : history.slice(1).map(written).join('')
    const start = (controller: ReadableStreamDefaultController) => controller.enqueue(new TextEncoder().encode(text))
    return new Response(new ReadableStream({ start }))
  }
  const seen = all(vaultEvents(open, 'vlt_1'))
  await vi.advanceTimersByTimeAsync(44_999)
  expect(requested).toEqual([undefined])
  await vi.advanceTimersByTimeAsync(300)
  expect(requested).toEqual([undefined, 'evt_1'])
  expect(await seen).toEqual(history)
})

describe('a stream of events is read as the standard says', () => {
  async function read(...pieces: string[]): Promise<StreamedEvent[]> {
    const events: StreamedEvent[] = []
    async function* text() {
      yield* pieces
    }
    for await (const event of readEvents(text())) events.push(event)
    return events
  }

  test.each([
    ['line feeds', 'id: 1\ndata: a\n\n'],
    ['carriage returns with line feeds', 'id: 1\r\ndata: a\r\n\r\n'],
    ['carriage returns alone', 'id: 1\rdata: a\r\r\n'],
    ['a byte order mark', '\uFEFFid: 1\ndata: a\n\n'],
    ['no space after the colon', 'id:1\ndata:a\n\n'],
    ['comments, names and times between', ': hello\nid: 1\nevent: x\nretry: 5\ndata: a\n:\n\n'],
  ])('with %s, in whatever pieces', async (_what, text) => {
    expect(await read(text)).toEqual([{ id: '1', data: 'a' }])
    expect(await read(...text)).toEqual([{ id: '1', data: 'a' }])
    for (let cut = 1; cut < text.length; cut++) {
      expect(await read(text.slice(0, cut), text.slice(cut))).toEqual([{ id: '1', data: 'a' }])
    }
  })

  test('data lines are joined, an id may come alone and lasts until the next, and an incomplete event at the end is dropped', async () => {
    expect(await read('id: 1\ndata: a\ndata:\ndata:  b\n\ndata: c\n\nid: 2\ndata: d\n')).toEqual([
      { id: '1', data: 'a\n\n b' },
      { id: '1', data: 'c' },
    ])
    expect(await read('id: 1\n\n\ndata: a\n\n')).toEqual([
      { id: '1', data: '' },
      { id: '1', data: 'a' },
    ])
    expect(await read('id: 1\ndata: a\n\nid: x\0y\ndata: b\n\nid\ndata: c\n\n')).toEqual([
      { id: '1', data: 'a' },
      { id: '1', data: 'b' },
      { id: '', data: 'c' },
    ])
  })

  test('an event without an end is given up, whether it is one line or many', async () => {
    const megabyte = 'a'.repeat(1_000_000)
    await expect(read(...Array(6).fill(megabyte))).rejects.toThrow(RangeError)
    await expect(read(...Array(6).fill(`data: ${megabyte}\n`))).rejects.toThrow(RangeError)
  })
})
