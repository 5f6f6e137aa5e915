import { createHash } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { isProblem } from '../platform/errors.ts'
import { type Random, systemRandom } from '../platform/random.ts'
import { type BlobKey, BlobRangeOutside, type BlobStore, BlobTooLarge, isBlobKey, openDiskBlobs } from './index.ts'

const directories: string[] = []
const noLimit = { bytesMax: Number.MAX_SAFE_INTEGER }
const noon = new Date('2026-03-01T12:00:00.000Z')

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

async function aStore(options: { directory?: string; random?: Random } = {}) {
  const directory = options.directory ?? mkdtempSync(path.join(tmpdir(), 'purser-files-'))
  directories.push(directory)
  const time = { now: noon }
  const clock = { now: () => time.now }
  const blobs = await openDiskBlobs({ directory, clock, random: options.random ?? systemRandom })
  return { blobs, directory, time }
}

async function* chunksOf(...chunks: readonly (string | Uint8Array)[]) {
  for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
}

async function contentOf(blobs: BlobStore, key: BlobKey, range?: { offset: number; length: number }): Promise<Buffer> {
  const opened = await blobs.open(key, range)
  const chunks: Uint8Array[] = []
  for await (const chunk of opened?.content ?? []) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(path.join(directory, name)).isFile(),
  )
}

async function keysBefore(blobs: BlobStore, before: Date): Promise<BlobKey[]> {
  const keys: BlobKey[] = []
  for await (const some of blobs.list(before)) keys.push(...some)
  return keys
}

const later = (minutes: number): Date => new Date(noon.getTime() + minutes * 60_000)

test('stored content is read back byte for byte, with its size and its SHA-256, for any chunking', async () => {
  const { blobs } = await aStore()
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 3_000 }), { maxLength: 8 }), async (chunks) => {
      const whole = Buffer.concat(chunks)
      const stored = await blobs.put(chunksOf(...chunks), noLimit)
      expect(stored).toEqual({
        key: stored.key,
        size: whole.length,
        sha256: createHash('sha256').update(whole).digest('hex'),
      })
      expect(isBlobKey(stored.key)).toBe(true)
      expect((await contentOf(blobs, stored.key)).equals(whole)).toBe(true)
    }),
    { numRuns: 50 },
  )
})

test('any range of the content is read exactly, and a range outside it is refused with the size', async () => {
  const { blobs } = await aStore()
  const whole = Buffer.from(systemRandom.bytes(200_000))
  const { key } = await blobs.put(chunksOf(whole), noLimit)
  const within = fc.tuple(fc.nat({ max: whole.length }), fc.nat({ max: whole.length }))
  await fc.assert(
    fc.asyncProperty(within, async ([offset, length]) => {
      const range = { offset, length }
      if (offset + length <= whole.length) {
        expect((await contentOf(blobs, key, range)).equals(whole.subarray(offset, offset + length))).toBe(true)
      } else {
        await expect(blobs.open(key, range)).rejects.toThrow(new BlobRangeOutside(whole.length))
      }
    }),
  )
  for (const [offset, length] of [
    [-1, 1],
    [0, -1],
    [0.5, 1],
    [0, 0.5],
    [Number.NaN, 1],
    [0, Number.POSITIVE_INFINITY],
  ] as const)
    await expect(blobs.open(key, { offset, length })).rejects.toThrow(BlobRangeOutside)
  const part = await blobs.open(key, { offset: 5, length: 10 })
  part?.content.destroy()
  expect(part?.size).toBe(whole.length)
})

test('an upload over the limit is refused at the first excess byte, its stream is ended, and nothing of it stays', async () => {
  const { blobs, directory } = await aStore()
  let pulled = 0
  let ended = false
  const endless = async function* () {
    try {
      for (;;) {
        pulled += 1
        yield Buffer.alloc(1_000)
      }
    } finally {
      ended = true
    }
  }
  await expect(blobs.put(endless(), { bytesMax: 9_999 })).rejects.toThrow(new BlobTooLarge(9_999))
  expect({ pulled, ended }).toEqual({ pulled: 10, ended: true })
  expect(filesIn(directory)).toEqual([])
  const request = Readable.from([Buffer.alloc(11)])
  await expect(blobs.put(request, { bytesMax: 10 })).rejects.toThrow(BlobTooLarge)
  expect(request.destroyed).toBe(true)
})

test('content of exactly the limit is stored, and so is empty content', async () => {
  const { blobs } = await aStore()
  expect(await blobs.put(chunksOf('12345', '67890'), { bytesMax: 10 })).toMatchObject({ size: 10 })
  const empty = await blobs.put(chunksOf(), { bytesMax: 0 })
  expect(empty).toMatchObject({ size: 0, sha256: createHash('sha256').digest('hex') })
  expect(await contentOf(blobs, empty.key)).toHaveLength(0)
  await expect(blobs.put(chunksOf('1'), { bytesMax: 0 })).rejects.toThrow(BlobTooLarge)
  await expect(blobs.put(chunksOf('1'), { bytesMax: Number.NaN })).rejects.toThrow(BlobTooLarge)
})

test('an upload whose stream fails leaves nothing and rejects with the stream’s error', async () => {
  const { blobs, directory } = await aStore()
  const gone = new Error('the client went away')
  const breaking = async function* () {
    yield Buffer.alloc(100_000)
    throw gone
  }
  await expect(blobs.put(breaking(), noLimit)).rejects.toBe(gone)
  expect(filesIn(directory)).toEqual([])
})

test('a request that fails at any moment of its upload fails only that upload, not the process', async () => {
  const { blobs, directory } = await aStore()
  const gone = new Error('the client went away')
  for (const chunks of [0, 1, 2, 5]) {
    const atOnce = new Readable({ read() {} })
    const putting = blobs.put(atOnce, noLimit)
    for (let sent = 0; sent < chunks; sent++) atOnce.push(Buffer.alloc(100_000))
    atOnce.destroy(gone)
    await expect(putting).rejects.toBe(gone)

    let left = chunks
    const midway = new Readable({
      read() {
        if (left-- > 0) this.push(Buffer.alloc(100_000))
        else this.destroy(gone)
      },
    })
    await expect(blobs.put(midway, noLimit)).rejects.toBe(gone)
  }
  expect(filesIn(directory)).toEqual([])
})

test('content that is still being uploaded is not listed, opened or swept', async () => {
  const { blobs, directory, time } = await aStore()
  const { promise: rest, resolve: sendRest } = Promise.withResolvers<void>()
  const { promise: half, resolve: halfIsThere } = Promise.withResolvers<void>()
  const slow = async function* () {
    yield Buffer.from('first ')
    halfIsThere()
    await rest
    yield Buffer.from('second')
  }
  const putting = blobs.put(slow(), noLimit)
  await half
  time.now = later(10_000)
  expect(await keysBefore(blobs, later(20_000))).toEqual([])
  expect(await blobs.discardPartial(later(20_000))).toBe(0)
  const [partial = ''] = filesIn(directory)
  const key = path.basename(partial).replace(/^\d+-/, '')
  expect(isBlobKey(key) && (await blobs.open(key))).toBeUndefined()
  sendRest()
  const stored = await putting
  expect((await contentOf(blobs, stored.key)).toString()).toBe('first second')
  expect(filesIn(directory)).toHaveLength(1)
})

test('an upload whose partial file another process removed fails', async () => {
  const { blobs, directory } = await aStore()
  const swept = async function* () {
    yield Buffer.from('x')
    const other = await aStore({ directory })
    expect(await other.blobs.discardPartial(later(1))).toBe(1)
  }
  await expect(blobs.put(swept(), noLimit)).rejects.toSatisfy((error) => isProblem(error, 'file-storage-unavailable'))
  expect(filesIn(directory)).toEqual([])
})

test('partial files of failed uploads are removed once they are old enough, and nothing else is', async () => {
  const { blobs, directory, time } = await aStore()
  const leave = (at: Date, digit: string) =>
    writeFileSync(path.join(directory, 'partial', `${at.getTime()}-blob_${digit.repeat(32)}`), 'half')
  leave(noon, 'a')
  leave(later(59), 'b')
  leave(later(60), 'c')
  writeFileSync(path.join(directory, 'partial', 'somebody-elses'), '')
  time.now = later(600)
  expect(await blobs.discardPartial(later(60), AbortSignal.abort())).toBe(0)
  expect(await blobs.discardPartial(later(60))).toBe(2)
  expect(readdirSync(path.join(directory, 'partial')).sort()).toEqual([
    `${later(60).getTime()}-blob_${'c'.repeat(32)}`,
    'somebody-elses',
  ])
  expect(await blobs.discardPartial(later(60))).toBe(0)
})

test('the list has each key stored before the instant, by the service’s clock, once', async () => {
  const { blobs, time } = await aStore()
  const old: BlobKey[] = []
  for (let index = 0; index < 520; index++) old.push((await blobs.put(chunksOf(String(index)), noLimit)).key)
  time.now = later(60)
  const { key: young } = await blobs.put(chunksOf('young'), noLimit)
  const sizes: number[] = []
  const listed: BlobKey[] = []
  for await (const some of blobs.list(later(60))) {
    sizes.push(some.length)
    listed.push(...some)
  }
  expect(listed.sort()).toEqual(old.sort())
  expect(sizes).toEqual([500, 20])
  expect(await keysBefore(blobs, noon)).toEqual([])
  expect(await keysBefore(blobs, later(61))).toContain(young)
})

test('removed content is gone, removing it again is harmless, and open readers can read to the end', async () => {
  const { blobs, directory } = await aStore()
  const { key } = await blobs.put(chunksOf(Buffer.alloc(1_000_000, 7)), noLimit)
  const reader = await blobs.open(key)
  await blobs.delete(key)
  await blobs.delete(key)
  expect(await blobs.open(key)).toBeUndefined()
  expect(filesIn(directory)).toEqual([])
  let read = 0
  for await (const chunk of reader?.content ?? []) read += chunk.length
  expect(read).toBe(1_000_000)
})

test('only a valid key leads to a file', async () => {
  const { blobs, directory } = await aStore()
  writeFileSync(path.join(directory, 'secret'), 'secret')
  for (const key of [
    'blob_../../secret',
    'blob_',
    `blob_${'A'.repeat(32)}`,
    `blob_${'a'.repeat(32)}\n`,
    'blob_\0',
  ] as const) {
    expect(isBlobKey(key)).toBe(false)
    await expect(blobs.open(key)).rejects.toThrow(TypeError)
    await expect(blobs.delete(key)).rejects.toThrow(TypeError)
  }
  expect(readFileSync(path.join(directory, 'secret'), 'utf8')).toBe('secret')
})

test('a repeated random key never overwrites a file', async () => {
  const { blobs, directory } = await aStore({ random: { bytes: (length) => new Uint8Array(length).fill(1) } })
  const { key } = await blobs.put(chunksOf('first'), noLimit)
  await expect(blobs.put(chunksOf('second'), noLimit)).rejects.toThrow()
  expect((await contentOf(blobs, key)).toString()).toBe('first')
  expect(filesIn(directory)).toHaveLength(1)
})

test('forty uploads at once are forty files, each with its own content', async () => {
  const { blobs } = await aStore()
  const contents = Array.from({ length: 40 }, (_, index) => Buffer.alloc(50_000 + index, index))
  const stored = await Promise.all(contents.map((content) => blobs.put(chunksOf(content), noLimit)))
  expect(new Set(stored.map(({ key }) => key)).size).toBe(40)
  for (const [index, { key }] of stored.entries())
    expect((await contentOf(blobs, key)).equals(contents[index] ?? Buffer.alloc(0))).toBe(true)
})

test('a disk error becomes a problem without a path', async () => {
  const { blobs, directory } = await aStore()
  const { key } = await blobs.put(chunksOf('x'), noLimit)
  rmSync(path.join(directory, 'blobs'), { recursive: true })
  writeFileSync(path.join(directory, 'blobs'), 'a file where a directory was')
  const calls = [() => blobs.put(chunksOf('y'), noLimit), () => blobs.open(key), () => keysBefore(blobs, later(1))]
  for (const call of calls) {
    const error: unknown = await call().then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(isProblem(error, 'file-storage-unavailable') && error.entry.status).toBe(503)
    expect(String(error)).not.toContain(directory)
  }
  expect(filesIn(path.join(directory, 'partial'))).toEqual([])
})

test('a reopened store finds its content, and directory permissions are never widened', async () => {
  const { blobs, directory } = await aStore()
  const { key } = await blobs.put(chunksOf('kept'), noLimit)
  const again = await aStore({ directory })
  expect((await contentOf(again.blobs, key)).toString()).toBe('kept')
  const modes = ['blobs', 'partial', path.join('blobs', key.slice(5, 7))].map((name) =>
    modeOf(path.join(directory, name)),
  )
  expect(modes).toEqual([0o700, 0o700, 0o700])
  const [file = ''] = filesIn(directory)
  expect(modeOf(path.join(directory, file))).toBe(0o600)
  chmodSync(path.join(directory, 'blobs'), 0o750)
  await aStore({ directory })
  expect(modeOf(path.join(directory, 'blobs'))).toBe(0o750)
})

function modeOf(name: string): number {
  return statSync(name).mode & 0o777
}
