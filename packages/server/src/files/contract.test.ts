import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startS3 } from '../../test/files/s3-server.ts'
import { systemClock } from '../platform/clock.ts'
import { isProblem } from '../platform/errors.ts'
import { systemRandom } from '../platform/random.ts'
import {
  type BlobKey,
  BlobRangeOutside,
  type BlobStore,
  BlobTooLarge,
  type ByteRange,
  isBlobKey,
  newBlobKey,
  openDiskBlobs,
  openS3Blobs,
} from './index.ts'

const noLimit = { bytesMax: Number.MAX_SAFE_INTEGER }
const minuteMs = 60_000
const mebibyte = 2 ** 20

interface Stage {
  readonly blobs: BlobStore
  stop(): Promise<void>
}

async function onDisk(): Promise<Stage> {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-files-'))
  const blobs = await openDiskBlobs({ directory, clock: systemClock, random: systemRandom })
  return { blobs, stop: async () => rmSync(directory, { recursive: true, force: true }) }
}

async function onS3(): Promise<Stage> {
  const server = await startS3()
  const blobs = await openS3Blobs(server.settings, { random: systemRandom })
  return {
    blobs,
    async stop() {
      blobs.close()
      await server.stop()
    },
  }
}

async function* chunksOf(...chunks: readonly Uint8Array[]) {
  yield* chunks
}

/** Content larger than one S3 part, in chunks that do not align with parts. */
async function* large(bytes: number, chunkBytes = 77_777) {
  for (let sent = 0; sent < bytes; sent += chunkBytes) {
    yield Buffer.alloc(Math.min(chunkBytes, bytes - sent), (sent / chunkBytes) % 251)
  }
}

async function bytesOf(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of content) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function read(blobs: BlobStore, key: BlobKey, range?: ByteRange): Promise<Buffer | undefined> {
  const opened = await blobs.open(key, range)
  return opened && bytesOf(opened.content)
}

async function keysBefore(blobs: BlobStore, before: Date): Promise<BlobKey[]> {
  const keys: BlobKey[] = []
  for await (const some of blobs.list(before)) {
    expect(some.length).toBeLessThanOrEqual(500)
    keys.push(...some)
  }
  return keys
}

const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
const inAMinute = () => new Date(systemClock.now().getTime() + minuteMs)
const aMinuteAgo = () => new Date(systemClock.now().getTime() - minuteMs)

describe.each([
  ['a disk', onDisk],
  ['an S3 server', onS3],
])('files on %s', (_, start) => {
  let stage: Stage
  let blobs: BlobStore

  beforeAll(async () => {
    stage = await start()
    blobs = stage.blobs
  })
  afterAll(() => stage?.stop())

  test('stored content is read back byte for byte, with its size and its SHA-256', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 0, maxLength: 3_000 }), { maxLength: 6 }),
        async (chunks) => {
          const whole = Buffer.concat(chunks)
          const stored = await blobs.put(chunksOf(...chunks), noLimit)
          expect(stored).toEqual({ key: stored.key, size: whole.length, sha256: sha256(whole) })
          expect(isBlobKey(stored.key)).toBe(true)
          expect((await read(blobs, stored.key))?.equals(whole)).toBe(true)
        },
      ),
      { numRuns: 20 },
    )
  })

  test('content of 40 MB in odd chunks is stored completely, and any range of it is exact', async () => {
    const whole = await bytesOf(large(40 * mebibyte))
    const { key, ...stored } = await blobs.put(large(40 * mebibyte), noLimit)
    expect(stored).toEqual({ size: whole.length, sha256: sha256(whole) })
    const opened = await blobs.open(key)
    expect(opened?.size).toBe(whole.length)
    expect(sha256(await bytesOf(opened?.content ?? chunksOf()))).toBe(sha256(whole))
    for (const [offset, length] of [
      [0, 2],
      [whole.length - 1, 1],
      [8 * mebibyte - 1, 2],
      [12_345_678, 65_537],
    ] as const) {
      const part = await blobs.open(key, { offset, length })
      expect(part?.size).toBe(whole.length)
      expect((await bytesOf(part?.content ?? chunksOf())).equals(whole.subarray(offset, offset + length))).toBe(true)
    }
  })

  test('a range outside the content is refused with the total size', async () => {
    const { key } = await blobs.put(chunksOf(Buffer.from('0123456789')), noLimit)
    for (const [offset, length] of [
      [10, 1],
      [9, 2],
      [11, 0],
      [-1, 1],
      [0, -1],
      [0.5, 1],
      [0, Number.NaN],
      [0, 2 ** 60],
    ] as const) {
      const outside = await blobs.open(key, { offset, length }).catch((error: unknown) => error)
      expect(outside, `${offset} ${length}`).toBeInstanceOf(BlobRangeOutside)
      expect(outside).toMatchObject({ size: 10 })
    }
    expect(await read(blobs, key, { offset: 10, length: 0 })).toEqual(Buffer.alloc(0))
    expect(await read(blobs, key, { offset: 3, length: 0 })).toEqual(Buffer.alloc(0))
  })

  test('empty content can be stored', async () => {
    const { key, ...stored } = await blobs.put(chunksOf(), noLimit)
    expect(stored).toEqual({ size: 0, sha256: sha256(Buffer.alloc(0)) })
    expect(await read(blobs, key)).toEqual(Buffer.alloc(0))
  })

  test('content can be stored under a key that was generated before', async () => {
    const key = newBlobKey(systemRandom)
    expect(await blobs.open(key)).toBeUndefined()
    expect((await blobs.put(chunksOf(Buffer.from('known')), { ...noLimit, key })).key).toBe(key)
    expect(String(await read(blobs, key))).toBe('known')
  })

  test.each([
    ['small', 100],
    ['of several parts', 20 * mebibyte],
  ])('content that is too large, %s, is refused at once, and nothing of it is stored', async (_size, bytesMax) => {
    const key = newBlobKey(systemRandom)
    let requested = 0
    const endless = (async function* () {
      for (;;) {
        requested += 65_536
        yield Buffer.alloc(65_536)
      }
    })()
    const refused = await blobs.put(endless, { bytesMax, key }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BlobTooLarge)
    expect(refused).toMatchObject({ bytesMax })
    expect(requested).toBeLessThan(bytesMax + 2 * mebibyte)
    expect(await blobs.open(key)).toBeUndefined()
  })

  test('content of exactly the limit is stored', async () => {
    const { size } = await blobs.put(large(9 * mebibyte), { bytesMax: 9 * mebibyte })
    expect(size).toBe(9 * mebibyte)
  })

  test.each([
    ['in its beginning', 10],
    ['in a later part', 20 * mebibyte],
  ])('content that breaks off %s fails with the stream’s error, and nothing of it is stored', async (_when, bytes) => {
    const key = newBlobKey(systemRandom)
    const fault = new Error('the connection broke')
    const broken = (async function* () {
      yield* large(bytes)
      throw fault
    })()
    expect(await blobs.put(broken, { ...noLimit, key }).catch((error: unknown) => error)).toBe(fault)
    expect(await blobs.open(key)).toBeUndefined()
  })

  test('deleted content is gone, and deleting it again or deleting an unknown key changes nothing', async () => {
    const { key } = await blobs.put(chunksOf(Buffer.from('gone')), noLimit)
    await blobs.delete(key)
    await blobs.delete(key)
    await blobs.delete(newBlobKey(systemRandom))
    expect(await blobs.open(key)).toBeUndefined()
    expect(await keysBefore(blobs, inAMinute())).not.toContain(key)
  })

  test('a reader that stops in the middle leaves the store unchanged', async () => {
    const { key } = await blobs.put(large(9 * mebibyte), noLimit)
    for (let times = 0; times < 60; times++) {
      const opened = await blobs.open(key)
      for await (const chunk of opened?.content ?? []) if (chunk.length > 0) break
    }
    expect((await read(blobs, key))?.length).toBe(9 * mebibyte)
  })

  test('content is listed by age', async () => {
    const { key } = await blobs.put(chunksOf(Buffer.from('listed')), noLimit)
    expect(await keysBefore(blobs, inAMinute())).toContain(key)
    expect(await keysBefore(blobs, aMinuteAgo())).not.toContain(key)
    expect(await blobs.discardPartial(aMinuteAgo())).toBe(0)
  })
})

test('a list of more keys than fit in one S3 page has each of them once', async () => {
  const { blobs, stop } = await onS3()
  try {
    const keys = Array.from({ length: 620 }, () => newBlobKey(systemRandom))
    for (let from = 0; from < keys.length; from += 50)
      await Promise.all(
        keys.slice(from, from + 50).map((key) => blobs.put(chunksOf(Buffer.from('x')), { ...noLimit, key })),
      )
    expect((await keysBefore(blobs, inAMinute())).sort()).toEqual(keys.sort())
  } finally {
    await stop()
  }
})

test('an unreachable storage or refused credentials lead to a problem that does not reveal the storage’s location', async () => {
  const server = await startS3()
  const wrongKey = await openS3Blobs({ ...server.settings, accessKeyId: 'WRONG' }, { random: systemRandom })
  const wrongBucket = await openS3Blobs({ ...server.settings, bucket: 'no-such-bucket' }, { random: systemRandom })
  const away = await openS3Blobs({ ...server.settings, endpoint: 'http://127.0.0.1:9' }, { random: systemRandom })
  const key = newBlobKey(systemRandom)
  try {
    for (const blobs of [wrongKey, wrongBucket, away]) {
      const faults = await Promise.all(
        [
          () => blobs.put(chunksOf(Buffer.from('x')), noLimit),
          () => blobs.put(large(20 * mebibyte), noLimit),
          () => blobs.open(key),
          () => blobs.open(key, { offset: 0, length: 1 }),
          () => keysBefore(blobs, inAMinute()),
        ].map((ask) =>
          ask().then(
            () => 'answered',
            (error: unknown) => error,
          ),
        ),
      )
      for (const fault of faults) {
        if (!isProblem(fault, 'file-storage-unavailable')) throw fault
        expect([fault.entry.status, JSON.stringify([fault.message, fault.members])]).toEqual([
          503,
          expect.not.stringContaining('127.0'),
        ])
      }
    }
  } finally {
    for (const blobs of [wrongKey, wrongBucket, away]) blobs.close()
    await server.stop()
  }
})
