import { expect, onTestFinished, test } from 'vitest'
import { ManualLine, openManually } from '../../../test/manual-line.ts'
import type { Environment } from '../ctx.ts'
import { isProblem } from '../errors.ts'
import { createLog } from '../log.ts'
import { createMetrics } from '../metrics.ts'
import type { EndedReaders, Reader } from '../reader.ts'
import { OpenStream, OpenStreams } from './streams.ts'

function someStreams(endedReaders: EndedReaders = async () => []) {
  const streams = new OpenStreams({
    log: createLog({ level: 'silent' }),
    metrics: createMetrics(),
    endedReaders,
    streamsMax: 100,
    lagBytesMax: 64_000,
    gauges: { open: ['open', 'Open.'], most: ['most', 'Most.'], largestShare: ['largest', 'Largest.'] },
    failure: 'access could not be checked',
  })
  onTestFinished(() => streams.stop())
  const open = (reader: Reader | undefined = undefined, owner = 'acc_1', environment: Environment = 'live') =>
    openManually(
      streams.respond({
        create: (line) => new OpenStream({ owner, environment, reader }, line),
        opened: ({ line }) => line.write(Buffer.from('hello')),
      }),
    )
  return { streams, open }
}

test('a reader that receives nothing for three heartbeats is disconnected, and one that receives a little is not', () => {
  const [stalled, slow] = [new ManualLine(), new ManualLine()]
  const streams = [stalled, slow].map(
    (line) => new OpenStream({ owner: 'acc_1', environment: 'test', reader: undefined }, line),
  )
  for (let heartbeat = 0; heartbeat < 3; heartbeat++) {
    stalled.waiting = 1_000 + heartbeat * 3
    slow.waiting = 1_000 - heartbeat
    for (const stream of streams) stream.sendHeartbeat()
    expect(slow.isOpen).toBe(true)
  }
  expect([stalled.how, stalled.written.length, slow.written.length]).toEqual(['cut', 2, 3])
})

test('in fifteen ticks every stream has one heartbeat, and they are spread over the ticks', async () => {
  const { streams, open } = someStreams()
  const lines = Array.from({ length: 45 }, () => open())
  const heartbeats = () => lines.flatMap(({ written }) => written).filter((text) => text === ':\n\n').length
  for (let tick = 1; tick <= 15; tick++) {
    void streams.tick()
    expect(heartbeats()).toBe(tick * 3)
  }
  expect(new Set(lines.map(({ written }) => written.length))).toEqual(new Set([2]))
  await streams.stop()
  expect(lines.map(({ how }) => how)).toEqual(lines.map(() => 'end'))
})

test('a failed check of keys ends no stream, and the next tick checks again', async () => {
  const requested: (readonly Reader[])[] = []
  const results = [Promise.reject(new Error('no database')), Promise.resolve(['key_2'] as const)]
  const { streams, open } = someStreams((readers) => {
    requested.push(readers)
    return results.shift() ?? Promise.resolve([])
  })
  const lines = [open('key_1'), open('key_2'), open('key_2'), open()]
  await streams.tick()
  expect(lines.map(({ isOpen }) => isOpen)).toEqual([true, true, true, true])
  await streams.tick()
  expect(lines.map(({ how }) => how)).toEqual([undefined, 'end', 'end', undefined])
  expect(requested).toEqual([
    ['key_1', 'key_2'],
    ['key_1', 'key_2'],
  ])
})

test('slow readers of one owner keep at most its share of the memory: the slowest are cut, and no quick one nor one of another owner', async () => {
  const { streams, open } = someStreams()
  const [slow, other] = [
    Array.from({ length: 50 }, () => open()),
    Array.from({ length: 10 }, () => open(undefined, 'acc_2')),
  ]
  const [slowest, quick] = [open(), open()]
  for (const line of [...slow, ...other]) line.waiting = 1_000
  slowest.waiting = 2_000
  await streams.tick()
  expect(streams.count).toBe(62)
  quick.waiting = 5_000
  await streams.tick()
  const kept = slow.filter(({ isOpen }) => isOpen).length
  expect([kept, slowest.how, quick.isOpen]).toEqual([27, 'cut', true])
  expect(other.every(({ isOpen }) => isOpen)).toBe(true)
})

test('streams of the test environment take half of the places of their owner, and leave the others to the live environment', () => {
  const { streams, open } = someStreams()
  /** Opens streams until one is refused; returns how many there were, and the code of the refusal. */
  const fill = (environment: Environment, owner = 'acc_1') => {
    for (let count = 0; ; count += 1)
      try {
        streams.refuseIfFull(owner, environment)
        open(undefined, owner, environment)
      } catch (error) {
        return [count, isProblem(error) ? error.code : error]
      }
  }
  expect(fill('test')).toEqual([25, 'rate-limit-exceeded'])
  expect(fill('live')).toEqual([25, 'rate-limit-exceeded'])
  expect(fill('test', 'acc_2')).toEqual([13, 'rate-limit-exceeded'])
  expect(fill('live', 'acc_2')).toEqual([12, 'rate-limit-exceeded'])
  // An owner without test streams has its whole share for live ones.
  expect(fill('live', 'acc_3')).toEqual([13, 'rate-limit-exceeded'])
})

test('a stream of the test environment that closes frees its place', () => {
  const { streams, open } = someStreams()
  const opened = Array.from({ length: 25 }, () => open(undefined, 'acc_1', 'test'))
  const refuse = () => streams.refuseIfFull('acc_1', 'test')
  expect(refuse).toThrow()
  opened[0]?.cut()
  expect(refuse).not.toThrow()
})
