import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readlinkSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { finished } from 'node:stream/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../platform/clock.ts'
import { isProblem } from '../platform/errors.ts'
import { Pour } from '../platform/pour.ts'
import { systemRandom } from '../platform/random.ts'
import { type BlobKey, type BlobStore, type ByteRange, openDiskBlobs } from './index.ts'

const whole = Buffer.from(systemRandom.bytes(1_300_001))
let directory: string
let blobs: BlobStore
let key: BlobKey

beforeEach(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'purser-pouring-'))
  blobs = await openDiskBlobs({ directory, clock: systemClock, random: systemRandom })
  const content = async function* () {
    yield whole
  }
  key = (await blobs.put(content(), { bytesMax: whole.length })).key
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function opened(range?: ByteRange): Promise<Pour> {
  const content = (await blobs.open(key, range))?.content
  if (!(content instanceof Pour)) throw new Error('a content of the disk cannot be poured')
  return content
}

/** Descriptors of files of the store that this process has open. */
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
])('%s is poured byte for byte, into memory that is used again, and the file is closed', async (_what, range) => {
  const content = await opened(range)
  const { offset, length } = range ?? { offset: 0, length: whole.length }
  const hash = createHash('sha256')
  const memories = new Set<ArrayBufferLike>()
  await content.pour(async (bytes) => {
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

test('no more is read than is taken: the memory of what is being taken is not written to meanwhile', async () => {
  const content = await opened()
  let at = 0
  await content.pour(async (bytes) => {
    const seen = Buffer.from(bytes)
    // Other reads go their way while these bytes are still being taken.
    for (let times = 0; times < 3; times++) await blobs.open(key).then((other) => other?.content.destroy())
    expect(seen.equals(bytes)).toBe(true)
    expect(seen.equals(whole.subarray(at, at + seen.length))).toBe(true)
    at += seen.length
  })
  expect(at).toBe(whole.length)
})

test('where nobody takes any more the pouring ends with that fault, and the file is closed', async () => {
  const content = await opened()
  const gone = new Error('the caller went away')
  await expect(content.pour(() => Promise.reject(gone))).rejects.toBe(gone)
  await finished(content, { writable: false }).catch(() => undefined)
  expect(open()).toBe(0)
})

test('a file that is shorter than it was is told as a fault of the storage, poured or read', async () => {
  const [poured, read] = [await opened(), await opened()]
  truncateSync(path.join(directory, 'blobs', key.slice(5, 7), key), 1_000_000)
  const isFault = (error: unknown): boolean => isProblem(error, 'file-storage-unavailable')
  await expect(poured.pour(async () => {})).rejects.toSatisfy(isFault)
  const reading = async (): Promise<void> => {
    for await (const chunk of read) expect(chunk.length).toBeGreaterThan(0)
  }
  await expect(reading()).rejects.toSatisfy(isFault)
})
