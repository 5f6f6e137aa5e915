import { once } from 'node:events'
import net from 'node:net'
import { Agent, EventSource } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { followVaults } from '../../src/features/vaults/index.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { openManually } from '../manual-line.ts'
import { aWorld, type Org, request, type World } from '../world.ts'
import { type Opening, openStream, type Reader } from './vault-stream-reader.ts'

let world: World
/** Two processes that answer requests, without a sweep. */
let bases: readonly [string, string]
let org: Org

const clock: Clock & { at: number } = { at: Date.parse('2026-03-01T12:00:00Z'), now: () => new Date(clock.at) }
const all = { from: '2000-01-01T00:00:00Z' }

beforeAll(async () => {
  world = await aWorld({ boot: { clock }, config: { role: 'api' } })
  bases = [world.base, (await world.another()).base]
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
})

async function call(method: string, path: string, body?: unknown, side: 0 | 1 = 0) {
  const answer = await request(bases[side], { key: org.testKey, method, path, body })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function aVault(ttl = '24h'): Promise<string> {
  return String((await call('POST', '/vaults', { ttl })).id)
}

function emit(vaultId: string, event: string, payload: unknown = {}) {
  return call('POST', `/vaults/${vaultId}/emit`, { event, payload })
}

async function tokenFor(vaultId: string, body: unknown = {}): Promise<string> {
  return String((await call('POST', `/vaults/${vaultId}/tokens`, body)).token)
}

function watch(vaultId: string, opening: Opening = { key: org.testKey }, side: 0 | 1 = 0): Promise<Reader> {
  return openStream(bases[side], vaultId, opening)
}

const codeOf = ({ problem }: Reader) => String(JSON.parse(problem).type).replace(/^.*\/problems\//, '')

test('a stream ends with vault.expired at the instant that its vault expires, swept or not, in every process, and does not open again', async () => {
  const vaultId = await aVault('30m')
  const key = await tokenFor(vaultId)
  const readers = [
    await watch(vaultId),
    await watch(vaultId, { key: org.testKey }, 1),
    await watch(vaultId, { key }),
    await watch(vaultId, { key: org.testKey, query: all }),
  ]
  await emit(vaultId, 'last words')
  for (const reader of readers) await reader.untilType('last words')
  clock.at += 30 * 60_000
  const expiredAt = new Date(clock.at).toISOString()
  for (const reader of readers) {
    expect(await reader.ended).toBe('end')
    expect(reader.events.at(-1)).toEqual({
      ...{ eventId: readers[0]?.lastEventId, type: 'vault.expired', vaultId },
      ...{ timestamp: expiredAt, payload: { expiredAt } },
    })
  }
  const lastEventId = String(readers[0]?.lastEventId)
  for (const opening of [{}, { lastEventId }, { query: all }]) {
    const again = await watch(vaultId, { key: org.testKey, ...opening })
    expect([again.status, codeOf(again)]).toEqual([404, 'vault-not-found'])
  }
})

test('an extended vault keeps its streams beyond its first expiry', async () => {
  const vaultId = await aVault('30m')
  const reader = await watch(vaultId)
  await call('POST', `/vaults/${vaultId}/extend`, { ttl: '2h' })
  clock.at += 60 * 60_000
  await emit(vaultId, 'later')
  expect((await reader.until(2)).map(({ type }) => type)).toEqual(['vault.extended', 'later'])
  reader.leave()
})

test('a stream ends when its vault is deleted in another process', async () => {
  const vaultId = await aVault()
  const reader = await watch(vaultId, { key: org.testKey }, 1)
  await call('DELETE', `/vaults/${vaultId}`)
  expect(await reader.ended).toBe('end')
  expect(reader.events).toEqual([])
})

test('a stream ends with vault.expired where the vault was swept before the stream read that it expired', async () => {
  const vaultId = await aVault('30m')
  clock.at += 30 * 60_000
  await followVaults.run(systemCtx(world.server.deps))
  const tenant = { organisationId: org.id, environment: 'test' } as const
  const right = { kind: 'guest', expiresAt: new Date('2999-01-01T00:00:00Z') } as const
  const opening = { tenant, owner: org.id, vaultId: id('vlt').parse(vaultId), right, after: 0 }
  const line = openManually(world.server.deps.vaultStreams.respond(opening, 1, Buffer.from('')))
  await expect.poll(() => line.how).toBe('end')
  expect(line.written.at(-1)).toContain('"type":"vault.expired"')
})

test('a vault token opens the stream of its vault until it expires, and no longer', async () => {
  const vaultId = await aVault()
  const key = await tokenFor(vaultId, { expiresIn: 600 })
  const [byToken, byKey] = [await watch(vaultId, { key }), await watch(vaultId)]
  clock.at += 599_000
  await emit(vaultId, 'in time')
  expect((await byToken.until(1))[0]?.type).toBe('in time')
  clock.at += 1_000
  expect(await byToken.ended).toBe('end')
  const again = await watch(vaultId, { key, lastEventId: byToken.lastEventId })
  expect([again.status, JSON.parse(again.problem).detail]).toEqual([
    401,
    expect.stringMatching(/^API key is invalid or missing/),
  ])
  await emit(vaultId, 'later')
  expect((await byKey.until(2))[1]?.type).toBe('later')
  byKey.leave()
})

test('a token, a ticket and a key open no stream but those of their own vault and organisation', async () => {
  const [vaultId, other] = [await aVault(), await aVault()]
  const key = await tokenFor(vaultId)
  const ticket = await tokenFor(vaultId, { kind: 'ticket' })
  const stranger = await world.organisation()
  const requested: [vaultId: string, opening: Opening, status: number][] = [
    [other, { key }, 401],
    [other, { query: { ticket } }, 401],
    [vaultId, { query: { ticket: key } }, 401],
    [vaultId, { key: ticket }, 401],
    [vaultId, { query: { ticket: '' } }, 401],
    [vaultId, {}, 401],
    [vaultId, { key: stranger.testKey }, 404],
    [vaultId, { key: org.liveKey }, 404],
  ]
  for (const [id, opening, status] of requested)
    expect((await watch(id, opening)).status, JSON.stringify(opening)).toBe(status)
})

test('a ticket opens one stream without a header, within its minute, in however many concurrent requests', async () => {
  const vaultId = await aVault()
  const ticket = await tokenFor(vaultId, { kind: 'ticket' })
  const readers = await Promise.all(
    Array.from({ length: 10 }, (_, side) => watch(vaultId, { query: { ticket } }, side % 2 === 0 ? 0 : 1)),
  )
  expect(readers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(401)])
  const opened = readers.find(({ status }) => status === 200)
  clock.at += 61_000
  await emit(vaultId, 'after the minute')
  expect((await opened?.until(1))?.[0]?.type).toBe('after the minute')
  opened?.leave()
  const late = await tokenFor(vaultId, { kind: 'ticket' })
  clock.at += 60_000
  expect((await watch(vaultId, { query: { ticket: late } })).status).toBe(401)
})

test('revoking a key ends the streams that it opened, in every process, and no others', async () => {
  const vaultId = await aVault()
  const spare = await call('POST', '/organisations/current/api-keys', { name: 'spare', environment: 'test' })
  const key = String(spare.key)
  const ended = [await watch(vaultId, { key }), await watch(vaultId, { key }, 1)]
  const staying = await watch(vaultId)
  await call('DELETE', `/organisations/current/api-keys/${spare.id}`)
  for (const reader of ended) expect(await reader.ended).toBe('end')
  await emit(vaultId, 'still there')
  expect((await staying.until(1))[0]?.type).toBe('still there')
  staying.leave()
})

test('a reader that does not read is cut before it fills the memory, delays nobody, and later gets everything that it missed', async () => {
  const vaultId = await aVault()
  const [slow, quick] = [await watch(vaultId), await watch(vaultId)]
  await expect.poll(streamsOpen).toBe(2)
  slow.pause()
  const text = 'x'.repeat(16_000)
  let count = 0
  // The operating system buffers several megabytes for the reader.
  while (streamsOpen() > 1 && count < 6_000) {
    await Promise.all(Array.from({ length: 8 }, () => emit(vaultId, 'big', { text })))
    count += 8
  }
  expect(streamsOpen()).toBe(1)
  expect((await quick.until(count)).length).toBe(count)
  slow.resume()
  expect(await slow.ended).toBe('cut')
  const got = slow.events.length
  expect(got).toBeLessThan(count)
  const again = await watch(vaultId, { key: org.testKey, lastEventId: slow.lastEventId })
  const rest = await again.until(count - got)
  expect([...slow.events, ...rest].map(({ eventId }) => eventId)).toEqual(quick.events.map(({ eventId }) => eventId))
  quick.leave()
  again.leave()
})

/** The number of streams that the first process has open. */
function streamsOpen(): number {
  return world.server.deps.vaultStreams.count
}

test('streams outlive the loss of every database connection, again and again, and miss and repeat nothing', async () => {
  const vaultId = await aVault()
  const readers = [await watch(vaultId), await watch(vaultId, { key: org.testKey }, 1)]
  const { db } = world.database
  let answered = 0
  for (let round = 0; round < 12; round++) {
    const emitting = Array.from({ length: 5 }, () =>
      request(bases[round % 2 === 0 ? 0 : 1], {
        key: org.testKey,
        method: 'POST',
        path: `/vaults/${vaultId}/emit`,
        body: { event: 'step' },
      }),
    )
    await db.run(sql`
      select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
    for (const { status } of await Promise.all(emitting)) answered += status === 201 ? 1 : 0
  }
  // A closed connection may still be taken for an open one.
  const isLastTaken = () =>
    emit(vaultId, 'last').then(
      () => true,
      () => false,
    )
  await expect.poll(isLastTaken).toBe(true)
  const whole = await watch(vaultId, { key: org.testKey, query: all })
  const reported = await whole.untilType('last')
  expect(reported.length).toBeGreaterThanOrEqual(answered + 2)
  for (const reader of readers) expect(await reader.untilType('last')).toEqual(reported.slice(1))
  for (const reader of [...readers, whole]) reader.leave()
})

test('the EventSource of undici follows a vault over broken connections to its end, and then does not reconnect', async () => {
  const vaultId = await aVault()
  const proxy = await aProxy(Number(new URL(bases[0]).port))
  const dispatcher = new Agent().compose((dispatch) => (options, handler) => {
    const authorization = `Bearer ${org.testKey}`
    return dispatch({ ...options, headers: { ...Object(options.headers), authorization } }, handler)
  })
  const source = new EventSource(`http://127.0.0.1:${proxy.port}/vaults/${vaultId}/events`, { node: { dispatcher } })
  const seen: unknown[] = []
  const events = new Map<number, () => void>()
  source.onmessage = ({ data, lastEventId }) => {
    const reported = JSON.parse(data)
    expect(reported.eventId).toBe(lastEventId)
    seen.push(reported.type)
    events.get(seen.length)?.()
  }
  const until = (count: number) =>
    new Promise<void>((resolve) => {
      events.set(count, resolve)
      if (seen.length >= count) resolve()
    })
  const closed = new Promise<void>((resolve) => {
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) resolve()
    }
  })
  await new Promise((resolve) => {
    source.onopen = resolve
  })
  await emit(vaultId, 'one')
  await until(1)
  proxy.breakAll()
  await emit(vaultId, 'two')
  await emit(vaultId, 'three')
  await until(3)
  await call('POST', `/vaults/${vaultId}/seal`, {})
  await until(4)
  await closed
  expect(seen).toEqual(['one', 'two', 'three', 'vault.sealed'])
  await proxy.stop()
})

interface Proxy {
  readonly port: number
  breakAll(): void
  stop(): Promise<void>
}

/** A proxy to a local port that can break its connections. */
async function aProxy(port: number): Promise<Proxy> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    }
    near.pipe(far).pipe(near)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    breakAll,
    async stop() {
      breakAll()
      server.close()
      await once(server, 'close')
    },
  }
}

test('a process that stops ends its streams, and their clients continue at another', async () => {
  const vaultId = await aVault()
  const third = await world.another()
  const readers = await Promise.all(
    Array.from({ length: 20 }, () => openStream(third.base, vaultId, { key: org.testKey })),
  )
  await emit(vaultId, 'one')
  for (const reader of readers) await reader.until(1)
  await third.server.stop()
  for (const reader of readers) expect(await reader.ended).toBe('end')
  await emit(vaultId, 'two')
  const again = await watch(vaultId, { key: org.testKey, lastEventId: String(readers[0]?.lastEventId) }, 1)
  expect((await again.until(1))[0]?.type).toBe('two')
  again.leave()
})
