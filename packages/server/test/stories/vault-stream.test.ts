import { afterAll, beforeAll, expect, test } from 'vitest'
import type { VaultId } from '../../src/features/vaults/index.ts'
import type { Clock } from '../../src/platform/clock.ts'
import type { SseConnection } from '../../src/platform/event-streams/response.ts'
import { id } from '../../src/platform/ids.ts'
import { aWorld, type Org, request, type World } from '../world.ts'
import { type Opening, openStream, type Reader } from './vault-stream-reader.ts'

let world: World
/** Two processes of one deployment. */
let bases: readonly [string, string]
let org: Org
/** Opened before all tests, so that no event comes while they run. */
let quiet: Reader
let quietSince = 0

const clock: Clock & { at: number } = { at: Date.parse('2026-03-01T12:00:00Z'), now: () => new Date(clock.at) }

beforeAll(async () => {
  world = await aWorld({ boot: { clock } })
  bases = [world.base, (await world.another()).base]
  org = await world.organisation()
  quietSince = performance.now()
  quiet = await watch(await aVault(), {})
})
afterAll(async () => {
  await world?.stop()
})

async function post(path: string, body: unknown, side: 0 | 1 = 0, key = org.testKey) {
  const answer = await request(bases[side], { key, method: 'POST', path, body })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function aVault(ttl = '24h'): Promise<VaultId> {
  return id('vlt').parse((await post('/vaults', { ttl })).id)
}

function emit(vaultId: string, name: string, side: 0 | 1 = 0) {
  return post(`/vaults/${vaultId}/emit`, { event: name, payload: { name } }, side)
}

function watch(vaultId: string, opening: Opening, side: 0 | 1 = 0): Promise<Reader> {
  return openStream(bases[side], vaultId, { key: org.testKey, ...opening })
}

/** All events of the vault, read by a client from the first on. */
async function replayed(vaultId: string, count: number, side: 0 | 1 = 0) {
  const reader = await watch(vaultId, { query: { from: '2000-01-01T00:00:00Z' } }, side)
  const events = await reader.until(count)
  reader.leave()
  return events.slice(0, count)
}

function codeOf({ problem }: Reader): string {
  return String(JSON.parse(problem).type).replace(/^.*\/problems\//, '')
}

test('a stream sends unnamed events with their ids, and the reconnection time', async () => {
  const vaultId = await aVault()
  const reader = await watch(vaultId, {})
  expect(reader.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^req_/),
    'access-control-allow-origin': '*',
    connection: 'close',
  })
  const emitted = await post(`/vaults/${vaultId}/emit`, {
    event: 'step\u2028done',
    payload: { text: 'a\nb\r\n\ndata: x' },
  })
  expect(await reader.until(1)).toEqual([emitted])
  expect([reader.retryMs, reader.lastEventId]).toEqual([2_000, emitted.eventId])
  reader.leave()
})

test('events of many emitters in two processes are delivered live in one order, which is that of the replay, without gap or repeat', async () => {
  const vaultId = await aVault()
  const early = [await watch(vaultId, {}, 0), await watch(vaultId, {}, 1)]
  const late: Promise<Reader>[] = []
  const emitters = Array.from({ length: 10 }, async (_, emitter) => {
    for (let number = 0; number < 30; number++) {
      await emit(vaultId, `${emitter}.${number}`, emitter % 2 === 0 ? 0 : 1)
      const query = { from: '2000-01-01T00:00:00Z' }
      if (number % 10 === 5) late.push(watch(vaultId, { query }, number % 20 === 5 ? 0 : 1))
    }
  })
  await Promise.all(emitters)
  const all = await replayed(vaultId, 301)
  expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(301)
  for (const reader of early) expect(await reader.until(300)).toEqual(all.slice(1))
  for (const reader of await Promise.all(late)) {
    expect(await reader.until(301)).toEqual(all)
    reader.leave()
  }
  await post(`/vaults/${vaultId}/seal`, {}, 1)
  for (const reader of early) {
    expect(await reader.ended).toBe('end')
    expect(reader.events).toHaveLength(301)
  }
})

test('a client that disconnects at every event in turn and reconnects with its id gets each event once', async () => {
  const vaultId = await aVault()
  const seen: string[] = []
  let lastEventId = String((await replayed(vaultId, 1))[0]?.eventId)
  const count = 40
  const emitting = (async () => {
    for (let number = 0; number < count; number++) await emit(vaultId, String(number), number % 2 === 0 ? 0 : 1)
  })()
  for (let at = 0; at < count; at++) {
    const reader = await watch(vaultId, { lastEventId }, at % 3 === 0 ? 1 : 0)
    const [event] = await reader.until(1)
    reader.leave()
    seen.push(String(event?.payload.name))
    lastEventId = String(event?.eventId)
  }
  await emitting
  expect(seen).toEqual(Array.from({ length: count }, (_, number) => String(number)))
})

test('a reader at the process that wrote gets the event at once, without waiting for a poll of the table', async () => {
  const vaultId = await aVault()
  const reader = await watch(vaultId, {})
  const waits: number[] = []
  for (let count = 1; count <= 25; count++) {
    await emit(vaultId, String(count))
    const emitted = performance.now()
    await reader.until(count)
    waits.push(performance.now() - emitted)
  }
  // With a poll five times a second, each would wait for most of a fifth of a second; a slow machine does not make most of
  // them slow.
  expect(waits.sort((left, right) => left - right)[12]).toBeLessThan(50)
  reader.leave()
})

test('a stream that opens while others get events that it has not seen reads them first, then gets later ones with them', async () => {
  const vaultId = await aVault()
  const other = await watch(vaultId, {})
  for (const name of ['one', 'two', 'three']) await emit(vaultId, name)
  await other.until(3)
  const line = new CollectingLine()
  const right = { kind: 'guest', expiresAt: new Date('2999-01-01T00:00:00Z') } as const
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const opening = { tenant, owner: org.id, vaultId, right, after: 1 }
  world.server.deps.vaultStreams.respond(opening, 1, Buffer.from('')).open(line)
  await line.until('"type":"three"')
  await emit(vaultId, 'four')
  await line.until('"type":"four"')
  expect(line.text.match(/"type":"\w+"/g)).toEqual(['one', 'two', 'three', 'four'].map((name) => `"type":"${name}"`))
  line.end()
  other.leave()
})

/** The client's end of a response, without a network. */
class CollectingLine implements SseConnection {
  readonly waiting = 0
  isOpen = true
  text = ''
  #wanted = { text: '', found: Promise.withResolvers<void>() }

  write(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString()
    if (this.text.includes(this.#wanted.text)) this.#wanted.found.resolve()
  }

  until(text: string): Promise<void> {
    this.#wanted = { text, found: Promise.withResolvers() }
    this.write(Buffer.from(''))
    return this.#wanted.found.promise
  }

  drained(): Promise<void> {
    return Promise.resolve()
  }

  end(): void {
    this.isOpen = false
    this.#wanted.found.reject(new Error('the stream ended'))
  }

  cut(): void {
    this.end()
  }
}

test('a burst of large events from another process reaches a fast reader, complete and uncut', async () => {
  const vaultId = await aVault()
  const reader = await watch(vaultId, {}, 1)
  const payload = { text: 'x'.repeat(16_000) }
  await Promise.all(Array.from({ length: 150 }, () => post(`/vaults/${vaultId}/emit`, { event: 'big', payload })))
  expect(new Set((await reader.until(150)).map(({ eventId }) => eventId)).size).toBe(150)
  reader.leave()
})

test('a client whose connection breaks before its first event misses nothing: its start is sent first', async () => {
  const vaultId = await aVault()
  await emit(vaultId, 'before')
  const reader = await watch(vaultId, {})
  await reader.untilOpening()
  reader.leave()
  await emit(vaultId, 'meanwhile')
  const again = await watch(vaultId, { lastEventId: reader.lastEventId })
  expect((await again.until(1)).map(({ type }) => type)).toEqual(['meanwhile'])
  again.leave()
})

test('from returns what happened after that instant and not in it, then continues live', async () => {
  const vaultId = await aVault()
  for (const name of ['one', 'two', 'three']) {
    clock.at += 1_000
    await emit(vaultId, name)
  }
  const two = new Date(clock.at - 1_000).toISOString()
  const reader = await watch(vaultId, { query: { from: two } }, 1)
  await reader.until(1)
  await emit(vaultId, 'four')
  expect((await reader.until(2)).map(({ type }) => type)).toEqual(['three', 'four'])
  reader.leave()
  const zoned = await watch(vaultId, { query: { from: two.replace('Z', '+00:00') } })
  expect((await zoned.until(1))[0]?.type).toBe('three')
  zoned.leave()
  const first = await watch(vaultId, { query: { from: '0000-01-01T00:00:00Z' } })
  expect((await first.until(1))[0]?.type).toBe('vault.created')
  first.leave()
  const future = await watch(vaultId, { query: { from: '2999-01-01T00:00:00Z' } })
  await emit(vaultId, 'five')
  expect((await future.until(1))[0]?.type).toBe('five')
  future.leave()
})

test('a client’s last event id takes precedence over from, and is in the address for a page that cannot send headers', async () => {
  const vaultId = await aVault()
  for (const name of ['one', 'two', 'three']) await emit(vaultId, name)
  const [, one, two] = await replayed(vaultId, 4)
  const from = '2000-01-01T00:00:00Z'
  const byHeader = await watch(vaultId, {
    query: { from, lastEventId: one?.eventId ?? '' },
    lastEventId: two?.eventId ?? '',
  })
  expect((await byHeader.until(1))[0]?.type).toBe('three')
  const byQuery = await watch(vaultId, { query: { from, lastEventId: one?.eventId ?? '' }, lastEventId: '' })
  expect((await byQuery.until(2)).map(({ type }) => type)).toEqual(['two', 'three'])
  byHeader.leave()
  byQuery.leave()
})

test('an event id that the vault does not have is 422, also another vault’s, and opens nothing', async () => {
  const [vaultId, other] = [await aVault(), await aVault()]
  const [foreign] = await replayed(other, 1)
  for (const lastEventId of [
    String(foreign?.eventId),
    'evt_01h455vb4pex5vsknk084sn02q',
    'nonsense',
    "'--",
    'x'.repeat(4_000),
  ]) {
    const reader = await watch(vaultId, { lastEventId })
    expect([reader.status, codeOf(reader)]).toEqual([422, 'event-not-found'])
  }
  for (const query of [{ from: 'yesterday' }, { from: '' }, { lastEventId: '\u0000' }, { nothing: '1' }]) {
    expect((await watch(vaultId, { query })).status).toBe(422)
  }
})

test('vault.sealed is the last event of every stream, and a client that reconnects with it gets 204', async () => {
  const vaultId = await aVault()
  const readers = [await watch(vaultId, {}, 0), await watch(vaultId, {}, 1)]
  await emit(vaultId, 'last words')
  await post(`/vaults/${vaultId}/seal`, { summary: 'done' })
  await post(`/vaults/${vaultId}/persist`, {})
  for (const reader of readers) {
    expect(await reader.ended).toBe('end')
    expect(reader.events.map(({ type }) => type)).toEqual(['last words', 'vault.sealed'])
  }
  const lastEventId = String(readers[0]?.lastEventId)
  for (const opening of [{ lastEventId }, { query: { from: '2999-01-01T00:00:00Z' } }]) {
    const again = await watch(vaultId, opening)
    expect([again.status, again.headers['content-type']]).toEqual([204, undefined])
  }
})

test('the stream of a sealed vault begins with the first event where its caller names no beginning, and a standard client reads it once', async () => {
  const vaultId = await aVault()
  await emit(vaultId, 'last words')
  await post(`/vaults/${vaultId}/seal`, {})
  for (const opening of [{}, { query: { from: '2000-01-01T00:00:00Z' } }]) {
    const whole = await watch(vaultId, opening)
    expect(await whole.ended).toBe('end')
    expect(whole.events.map(({ type }) => type)).toEqual(['vault.created', 'last words', 'vault.sealed'])
    expect((await watch(vaultId, { lastEventId: whole.lastEventId })).status).toBe(204)
  }
})

test('a long history is sent complete and in order, page by page', async () => {
  const vaultId = await aVault()
  const payload = { text: 'x'.repeat(2_000) }
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let number = 0; number < 25; number++) await post(`/vaults/${vaultId}/emit`, { event: 'big', payload })
    }),
  )
  const all = await replayed(vaultId, 501)
  expect(new Set(all.map(({ eventId }) => eventId)).size).toBe(501)
  expect(await replayed(vaultId, 501, 1)).toEqual(all)
  const middle = await watch(vaultId, { lastEventId: all[250]?.eventId ?? '' })
  expect((await middle.until(250)).slice(0, 250)).toEqual(all.slice(251))
  middle.leave()
})

test('a quiet stream sends a comment every fifteen seconds', async () => {
  await quiet.untilComment()
  const seconds = (performance.now() - quietSince) / 1_000
  expect(quiet.events).toEqual([])
  expect(quiet.comments).toBeLessThanOrEqual(seconds / 15 + 1)
})
