import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { toyDeps } from '../../../../test/toy-deps.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import type { EventStreamResponse, SseConnection } from '../../../platform/event-stream-response.ts'
import { newId } from '../../../platform/ids.ts'
import type { Reader } from '../../../platform/reader.ts'
import { EventStream } from './event-stream.ts'
import { type Frame, frameOf } from './frame.ts'
import { VaultStreams } from './streams.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

/** A connection whose reader receives nothing until the test says so. */
class ManualLine implements SseConnection {
  readonly written: string[] = []
  isOpen = true
  how: 'end' | 'cut' | undefined
  waiting = 0
  readonly #closed: () => void

  constructor(closed: () => void = () => undefined) {
    this.#closed = closed
  }

  write(bytes: Uint8Array): void {
    this.written.push(Buffer.from(bytes).toString())
  }

  drained(): Promise<void> {
    return Promise.resolve()
  }

  end(): void {
    this.#close('end')
  }

  cut(): void {
    this.#close('cut')
  }

  #close(how: 'end' | 'cut'): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.how = how
    this.#closed()
  }
}

const deps = () => toyDeps(database.db)
const vaultId = newId('vlt', {
  clock: { now: () => new Date(0) },
  random: { bytes: (length) => new Uint8Array(length) },
})
const expiresAt = new Date('2999-01-01T00:00:00Z')

function tenantNumber(number: number): Tenant {
  return { organisationId: `org_${number}`, environment: 'test' }
}

function open(live: EventStreamResponse): ManualLine {
  const line = new ManualLine(live.closed)
  live.open(line)
  return line
}

function frames(from: number, to: number): Frame[] {
  return Array.from({ length: to - from + 1 }, (_, index) =>
    frameOf(vaultId, {
      sequence: from + index,
      id: newId('evt', deps()),
      type: 'step',
      payload: JSON.stringify({ number: from + index }),
      createdAt: new Date(0),
    }),
  )
}

function aStream(after: number): { stream: EventStream; line: ManualLine } {
  const line = new ManualLine()
  const opening = {
    tenant: tenantNumber(1),
    owner: 'acc_1',
    vaultId,
    right: { kind: 'guest', expiresAt } as const,
    after,
  }
  return { stream: new EventStream(opening, line), line }
}

test('whatever a stream is sent, and sent again, it writes each event once and in order, or is closed', () => {
  const ranges = fc.array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 8 })), { maxLength: 12 })
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 }), ranges, (after, reported) => {
      const { stream, line } = aStream(after)
      for (const [from, more] of reported) {
        const batch = frames(from, from + more)
        if (line.isOpen) stream.send(batch, Buffer.concat(batch.map(({ bytes }) => bytes)))
      }
      const numbers = [...line.written.join('').matchAll(/"number":(\d+)/g)].map(([, number]) => Number(number))
      expect(numbers).toEqual(numbers.map((_, index) => after + 1 + index))
      expect(stream.sent).toBe(after + numbers.length)
      const reached = reported.reduce((at, [from, more]) => (from > at + 1 ? at : Math.max(at, from + more)), after)
      if (line.isOpen) expect(stream.sent).toBe(reached)
    }),
  )
})

test('a reader that receives nothing for three heartbeats is disconnected, and one that receives a little is not', () => {
  const [stalled, slow] = [aStream(0), aStream(0)]
  for (let beat = 0; beat < 3; beat++) {
    stalled.line.waiting = 1_000 + beat * 3
    slow.line.waiting = 1_000 - beat
    stalled.stream.beat()
    slow.stream.beat()
    expect(slow.line.isOpen).toBe(true)
  }
  expect([stalled.line.how, stalled.line.written.length, slow.line.written.length]).toEqual(['cut', 2, 3])
})

test('in fifteen ticks every stream has one heartbeat, and they are spread over the ticks', async () => {
  const streams = new VaultStreams({ ...deps(), endedReaders: async () => [] })
  const answer = () =>
    streams.answer(
      { tenant: tenantNumber(1), owner: 'acc_1', vaultId, right: { kind: 'guest', expiresAt }, after: 0 },
      0,
      Buffer.from(''),
    )
  const lines = Array.from({ length: 45 }, () => open(answer()))
  const beatsOf = () => lines.reduce((sum, { written }) => sum + written.filter((text) => text === ':\n\n').length, 0)
  for (let beat = 1; beat <= 15; beat++) {
    void streams.beat()
    expect(beatsOf()).toBe(beat * 3)
  }
  expect(new Set(lines.map(({ written }) => written.length))).toEqual(new Set([2]))
  await streams.stop()
  expect(lines.map(({ how }) => how)).toEqual(lines.map(() => 'end'))
})

test('S4: one owner of places, and all together, have at most the streams of a process, and one that closes frees its place', async () => {
  const streams = new VaultStreams({ ...deps(), endedReaders: async () => [] })
  const openFor = (number: number, count: number) =>
    Array.from({ length: count }, () =>
      open(
        streams.answer(
          {
            tenant: tenantNumber(number),
            owner: `acc_${number}`,
            vaultId,
            right: { kind: 'guest', expiresAt },
            after: 0,
          },
          0,
          Buffer.from(''),
        ),
      ),
    )
  const refusal = (number: number) => {
    try {
      streams.refuseIfFull(`acc_${number}`)
      return 'none'
    } catch (error) {
      return isProblem(error) ? error.code : error
    }
  }
  const [first] = openFor(1, 10_000)
  expect([refusal(1), refusal(2)]).toEqual(['rate-limit-exceeded', 'none'])
  first?.cut()
  expect(refusal(1)).toBe('none')
  openFor(2, 5_001)
  expect([refusal(2), refusal(3)]).toEqual(['rate-limit-exceeded', 'none'])
  openFor(4, 5_000)
  expect([refusal(1), refusal(2), refusal(3)]).toEqual(Array(3).fill('service-unavailable'))
  await streams.stop()
  expect([streams.count, refusal(1)]).toEqual([0, 'none'])
})

test.each([
  ['before', [2, 1]],
  ['after', [1, 2]],
] as const)(
  'slow readers of one owner keep at most its share of the memory, and those of another that connected %s them and quick ones stay',
  async (_, order) => {
    const streams = new VaultStreams({ ...deps(), endedReaders: async () => [] })
    const openFor = (number: number, count: number) => {
      const opening = { tenant: tenantNumber(number), owner: `acc_${number}`, vaultId, after: 0 }
      return Array.from({ length: count }, () =>
        open(streams.answer({ ...opening, right: { kind: 'guest', expiresAt } }, 0, Buffer.from(''))),
      )
    }
    const opened = new Map(order.map((number) => [number, openFor(number, number === 1 ? 1_300 : 100)]))
    const [slow = [], other = [], quick] = [opened.get(1), opened.get(2), openFor(1, 100)]
    for (const line of [...slow, ...other]) line.waiting = 200_000
    await streams.beat()
    expect(streams.count).toBe(1_500)
    for (const line of quick) line.waiting = 200_000
    await streams.beat()
    const kept = slow.filter(({ isOpen }) => isOpen).length
    expect(kept * 200_000).toBeLessThan(128 * 2 ** 20)
    expect(kept).toBeGreaterThan(500)
    expect([...other, ...quick].filter(({ isOpen }) => !isOpen)).toEqual([])
    await streams.stop()
  },
)

test('a stream whose vault is gone before its history is sent ends', async () => {
  const streams = new VaultStreams({ ...deps(), endedReaders: async () => [] })
  const gone = Promise.withResolvers<void>()
  const opening = {
    tenant: tenantNumber(1),
    owner: 'acc_1',
    vaultId,
    right: { kind: 'guest', expiresAt } as const,
    after: 0,
  }
  const line = new ManualLine(gone.resolve)
  streams.answer(opening, 5, Buffer.from('hello')).open(line)
  await gone.promise
  expect([line.how, line.written]).toEqual(['end', ['hello']])
  await streams.stop()
})

test('a failed check of keys ends no stream, and the next tick checks again', async () => {
  const requested: (readonly Reader[])[] = []
  const answers = [Promise.reject(new Error('no database')), Promise.resolve(['key_2'] as const)]
  const streams = new VaultStreams({
    ...deps(),
    endedReaders: (ids) => {
      requested.push(ids)
      return answers[requested.length - 1] ?? Promise.resolve([])
    },
  })
  const lines = (['key_1', 'key_2', 'key_2'] as const).map((id) =>
    open(
      streams.answer(
        { tenant: tenantNumber(1), owner: 'acc_1', vaultId, right: { kind: 'reader', reader: id }, after: 0 },
        0,
        Buffer.from(''),
      ),
    ),
  )
  await streams.beat()
  expect(lines.map(({ isOpen }) => isOpen)).toEqual([true, true, true])
  await streams.beat()
  expect(lines.map(({ how }) => how)).toEqual([undefined, 'end', 'end'])
  expect(requested).toEqual([
    ['key_1', 'key_2'],
    ['key_1', 'key_2'],
  ])
  await streams.stop()
})
