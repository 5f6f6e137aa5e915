import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { ManualLine, openManually } from '../../../../test/manual-line.ts'
import { toyDeps } from '../../../../test/toy-deps.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import { EventStream } from './event-stream.ts'
import { type Frame, frameOf } from './frame.ts'
import { VaultStreams } from './streams.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const deps = () => toyDeps(database.db)
const vaultId = newId('vlt', {
  clock: { now: () => new Date(0) },
  random: { bytes: (length) => new Uint8Array(length) },
})
const expiresAt = new Date('2999-01-01T00:00:00Z')

function tenantNumber(number: number): Tenant {
  return { organisationId: `org_${number}`, environment: 'test' }
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

test('one share owner, and all together, have at most the streams of a process, and one that closes frees its slot', async () => {
  const streams = new VaultStreams({ ...deps(), endedReaders: async () => [] })
  const openFor = (number: number, count: number) =>
    Array.from({ length: count }, () =>
      openManually(
        streams.respond(
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
      streams.refuseIfFull(`acc_${number}`, 'live')
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
        openManually(streams.respond({ ...opening, right: { kind: 'guest', expiresAt } }, 0, Buffer.from(''))),
      )
    }
    const opened = new Map(order.map((number) => [number, openFor(number, number === 1 ? 1_300 : 100)]))
    const [slow = [], other = [], quick] = [opened.get(1), opened.get(2), openFor(1, 100)]
    for (const line of [...slow, ...other]) line.waiting = 200_000
    await streams.tick()
    expect(streams.count).toBe(1_500)
    for (const line of quick) line.waiting = 200_000
    await streams.tick()
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
  streams.respond(opening, 5, Buffer.from('hello')).open(line)
  await gone.promise
  expect([line.how, line.written]).toEqual(['end', ['hello']])
  await streams.stop()
})
