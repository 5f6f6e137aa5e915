import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { finished } from 'node:stream/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../platform/clock.ts'
import { isProblem } from '../platform/errors.ts'
import { systemRandom } from '../platform/random.ts'
import { ReusedBufferStream } from '../platform/reused-buffer-stream.ts'
import { type BlobKey, type BlobStore, type ByteRange, openDiskBlobs } from './index.ts'

const whole = Buffer.from(systemRandom.bytes(1_300_001))
let directory: string
let blobs: BlobStore
let key: BlobKey

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'purser-write-to-'))
  blobs = await openDiskBlobs({ directory, clock: systemClock, random: systemRandom })
  const content = async function* () {
    yield whole
  }
  key = (await blobs.put(content(), { bytesMax: whole.length })).key
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function opened(range?: ByteRange): Promise<ReusedBufferStream> {
  const content = (await blobs.open(key, range))?.content
  if (!(content instanceof ReusedBufferStream)) throw new Error('disk content must support writeTo')
  return content
}

/** Number of open descriptors of the store's files in this process. */
function open(): number {
  const links = readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`)
    } catch {
      return ''
    }
  })
  return links.filter((link) => link.startsWith(directory)).length
}

test.each([
  ['all of it', undefined],
  ['a part of it', { offset: 262_143, length: 700_001 }],
  ['one byte', { offset: 1_300_000, length: 1 }],
])('%s is written byte for byte through reused memory, and the file is closed', async (_what, range) => {
  const content = await opened(range)
  const { offset, length } = range ?? { offset: 0, length: whole.length }
  const hash = createHash('sha256')
  const memories = new Set<ArrayBufferLike>()
  await content.writeTo(async (bytes) => {
    memories.add(bytes.buffer)
    hash.update(bytes)
  })
  await finished(content, { writable: false }).catch(() => undefined)
  expect(hash.digest('hex')).toBe(
    createHash('sha256')
      .update(whole.subarray(offset, offset + length))
      .digest('hex'),
  )
  expect(memories.size).toBe(Math.min(2, Math.ceil(length / 262_144)))
  expect(open()).toBe(0)
})

test('memory is not overwritten while its bytes are being consumed', async () => {
  const content = await opened()
  let at = 0
  await content.writeTo(async (bytes) => {
    const seen = Buffer.from(bytes)
    // Other reads continue while these bytes are being consumed.
    for (let times = 0; times < 3; times++) await blobs.open(key).then((other) => other?.content.destroy())
    expect(seen.equals(bytes)).toBe(true)
    expect(seen.equals(whole.subarray(at, at + seen.length))).toBe(true)
    at += seen.length
  })
  expect(at).toBe(whole.length)
})

test('when the consumer fails, writing ends with its error and the file is closed', async () => {
  const content = await opened()
  const gone = new Error('the caller went away')
  await expect(content.writeTo(() => Promise.reject(gone))).rejects.toBe(gone)
  await finished(content, { writable: false }).catch(() => undefined)
  expect(open()).toBe(0)
})

test('a truncated file is reported as a storage failure, when written and when read', async () => {
  const [written, read] = [await opened(), await opened()]
  truncateSync(path.join(directory, 'blobs', key.slice(5, 7), key), 1_000_000)
  const isFault = (error: unknown): boolean => isProblem(error, 'file-storage-unavailable')
  await expect(written.writeTo(async () => {})).rejects.toSatisfy(isFault)
  const reading = async (): Promise<void> => {
    for await (const chunk of read) expect(chunk.length).toBeGreaterThan(0)
  }
  await expect(reading()).rejects.toSatisfy(isFault)
})

/** The memory of buffers that these transfers keep, in MiB. */
const keptMib = (before: number): number => (process.memoryUsage().arrayBuffers - before) / 2 ** 20

test('a thousand readers who do not read keep little memory, and a reader beside them gets every byte', async () => {
  const before = process.memoryUsage().arrayBuffers
  const stop = Promise.withResolvers<void>()
  const contents = await Promise.all(Array.from({ length: 1_000 }, () => opened()))
  const started: Promise<unknown>[] = []
  const ends = contents.map((content) => {
    const begun = Promise.withResolvers<void>()
    started.push(begun.promise)
    return content.writeTo(() => {
      begun.resolve()
      return stop.promise
    })
  })
  await Promise.all(started)
  // 64 MiB and 32 KiB for each, where large buffers for each would take 500 MiB.
  expect(keptMib(before)).toBeLessThan(120)
  const hash = createHash('sha256')
  await (await opened()).writeTo(async (bytes) => void hash.update(bytes))
  expect(hash.digest('hex')).toBe(createHash('sha256').update(whole).digest('hex'))
  stop.reject(new Error('gone'))
  await Promise.allSettled(ends)
})

test('some hundred senders who stop in the middle keep little memory, and what is sent beside them is stored whole', async () => {
  const before = process.memoryUsage().arrayBuffers
  const stop = Promise.withResolvers<void>()
  let waiting = 0
  const puts = Array.from({ length: 300 }, () =>
    blobs.put(
      (async function* () {
        yield whole.subarray(0, 1_250_000)
        waiting += 1
        await stop.promise
      })(),
      { bytesMax: whole.length },
    ),
  )
  const ends = Promise.allSettled(puts)
  await expect.poll(() => waiting, { timeout: 60_000 }).toBe(300)
  // 64 MiB and 32 KiB for each, where large buffers for each would take 375 MiB.
  expect(keptMib(before)).toBeLessThan(120)
  const content = async function* () {
    yield whole
  }
  const { sha256 } = await blobs.put(content(), { bytesMax: whole.length })
  expect(sha256).toBe(createHash('sha256').update(whole).digest('hex'))
  stop.reject(new Error('gone'))
  expect((await ends).every(({ status }) => status === 'rejected')).toBe(true)
})
