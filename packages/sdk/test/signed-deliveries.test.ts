import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import { AuthenticationError, createPurser, type ListenQuery, type SignedDelivery } from '../src/index.ts'
import { apiKey } from './fake-purser.ts'
import { serve } from './pay-stage.ts'

/** By the clock of the service, which is an hour ahead of the one here. */
const serviceNow = Math.floor(Date.now() / 1_000) + 3_600

function deliveryNumber(number: number, signedSecondsAgo = 0): SignedDelivery {
  const eventId = `evt_${number}`
  const headers = { 'webhook-id': eventId, 'webhook-timestamp': String(serviceNow - signedSecondsAgo) }
  return { id: eventId, eventId, type: 'vault.sealed', headers, body: `{"eventId":"${eventId}"}` }
}

function written({ id, ...delivery }: SignedDelivery): string {
  return `id: ${id}\ndata: ${JSON.stringify(delivery)}\n\n`
}

const history = [1, 2, 3, 4, 5].map((number) => deliveryNumber(number))

type Answer = (res: ServerResponse, rest: readonly SignedDelivery[]) => void

/** A stream as the service has it; each connection is answered in its own way, then in the last. */
async function aStream(...answers: Answer[]) {
  const requested: IncomingMessage[] = []
  const baseUrl = await serve((req, res) => {
    requested.push(req)
    const after = history.findIndex(({ id }) => id === req.headers['last-event-id'])
    const response = answers.length > 1 ? answers.shift() : answers[0]
    response?.(res, history.slice(after + 1))
  })
  const { events } = createPurser({ apiKey, baseUrl, retry: { delayMsFirst: 1 } })
  return { requested, events, places: () => requested.map(({ headers }) => headers['last-event-id']) }
}

function begin(res: ServerResponse, text: string): ServerResponse {
  const date = new Date(serviceNow * 1_000).toUTCString()
  res.writeHead(200, { 'content-type': 'text/event-stream', date }).write(`retry: 2000\nid: 0\n\n${text}`)
  return res
}

const whole: Answer = (res, rest) => void begin(res, rest.map(written).join(''))
const nothing: Answer = (res) => void res.writeHead(204).end()
const refused: Answer = (res) => {
  const type = 'http://purser.test/problems/unauthorized'
  res.writeHead(401).end(JSON.stringify({ type, title: 'Unauthorized', status: 401, detail: 'revoked' }))
}

async function take(
  events: AsyncIterable<SignedDelivery>,
  count = Number.POSITIVE_INFINITY,
): Promise<SignedDelivery[]> {
  const had: SignedDelivery[] = []
  for await (const delivery of events) {
    had.push(delivery)
    if (had.length === count) break
  }
  return had
}

test('deliveries have the headers and the raw body to forward, and only the requested types', async () => {
  const { requested, events } = await aStream(whole)
  const query: ListenQuery = { events: ['vault.sealed', 'vault.expired'], from: '2026-11-22T00:00:00Z' }
  expect(await take(events.stream(query), 5)).toEqual(history)
  expect(requested.map(({ url }) => url)).toEqual([
    '/events/stream?events=vault.sealed%2Cvault.expired&from=2026-11-22T00%3A00%3A00Z',
  ])
  expect(requested[0]?.headers).toMatchObject({ accept: 'text/event-stream', authorization: `Bearer ${apiKey}` })
})

test.each([1, 2, 3, 4])(
  'a connection that breaks after delivery %i is opened again there: no gap, no repeat',
  async (count) => {
    const some: Answer = (res, rest) => {
      const half = rest[count] === undefined ? '' : written(rest[count]).slice(0, 40)
      begin(res, rest.slice(0, count).map(written).join('') + half).end()
    }
    const { events, places } = await aStream(some, whole)
    expect(await take(events.stream(), 5)).toEqual(history)
    expect(places()).toEqual([undefined, `evt_${count}`])
  },
)

test('one that was handed out and not done with when the loop ended is the one that comes first the next time', async () => {
  const { events, places } = await aStream(whole)
  const [first] = await take(events.stream(), 1)
  expect(await take(events.stream({ lastEventId: first?.id }), 1)).toEqual([history[1]])
  expect(places()).toEqual([undefined, 'evt_1'])
})

test('a delivery whose signature is too old is not yielded but requested again', async () => {
  const late: Answer = (res) => void begin(res, [deliveryNumber(1), deliveryNumber(2, 61)].map(written).join(''))
  const { events, places } = await aStream(late, whole)
  expect(await take(events.stream(), 5)).toEqual(history)
  expect(places()).toEqual([undefined, 'evt_1'])
  const timely: Answer = (res) => void begin(res, written(deliveryNumber(1, 59)))
  expect(await take((await aStream(timely)).events.stream(), 1)).toEqual([deliveryNumber(1, 59)])
})

test('what there is and no more ends by itself, also over a connection that broke', async () => {
  const two: Answer = (res, rest) => void begin(res, rest.slice(0, 2).map(written).join('')).end()
  const { events, requested } = await aStream(two, two, two, nothing)
  expect(await take(events.stream({ follow: 'false' }))).toEqual(history)
  expect(requested.map(({ url }) => url)).toEqual(Array(4).fill('/events/stream?follow=false'))
})

test('callbacks report when the stream opens, breaks and reopens', async () => {
  const reported: string[] = []
  const one: Answer = (res, rest) => void begin(res, rest.slice(0, 1).map(written).join('')).end()
  const { events } = await aStream(one, (res) => void res.socket?.destroy(), whole)
  const hooks = {
    onOpen: () => reported.push('open'),
    onBreak: (error: unknown) => reported.push(error === undefined ? 'ended' : 'broken'),
  }
  await take(events.stream({}, hooks), 3)
  expect(reported).toEqual(['open', 'ended', 'broken', 'open'])
})

test('a key that is revoked meanwhile is an error', async () => {
  const one: Answer = (res, rest) => void begin(res, rest.slice(0, 1).map(written).join('')).end()
  const { events } = await aStream(one, refused)
  await expect(take(events.stream())).rejects.toBeInstanceOf(AuthenticationError)
})

test.each(['not json', '[]', '{"eventId":"evt_1"}', '{"eventId":"e","type":"t","headers":[],"body":7}'])(
  'data that is not a delivery is an error and not requested again: %s',
  async (data) => {
    const { requested, events } = await aStream((res) => void begin(res, `id: evt_1\ndata: ${data}\n\n`))
    await expect(take(events.stream())).rejects.toMatchObject({ code: 'unreadable-answer' })
    expect(requested).toHaveLength(1)
  },
)

test('a signal ends the listening with its reason, and the connection', async () => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const { requested, events } = await aStream(whole)
  const listening = (async () => {
    for await (const { id } of events.stream({}, { signal: controller.signal }))
      if (id === 'evt_5') controller.abort(reason)
  })()
  await expect(listening).rejects.toBe(reason)
  await expect.poll(() => requested[0]?.socket.destroyed).toBe(true)
})
