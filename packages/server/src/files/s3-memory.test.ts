import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startS3 } from '../../test/files/s3-server.ts'
import { systemRandom } from '../platform/random.ts'
import { openS3Blobs } from './index.ts'

const mebibyte = 2 ** 20
const bytesMax = 100 * mebibyte
let server: Awaited<ReturnType<typeof startS3>>

beforeAll(async () => {
  server = await startS3()
})
afterAll(() => server?.stop())

/** Content of random bytes, in chunks. */
function* contentOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= 100_000) yield Buffer.from(systemRandom.bytes(Math.min(left, 100_000)))
}

/** An upload that sends this many bytes and then nothing until it is ended. */
function hanging(bytes: number) {
  const { promise: end, resolve: go } = Promise.withResolvers<void>()
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
  async function* content() {
    yield* contentOf(bytes)
    reach()
    await end
  }
  return { content: content(), reached, end: go }
}

test('slow uploads of one owner take at most its share of the memory, and those of another are stored meanwhile', async () => {
  const blobs = await openS3Blobs(server.settings, { random: systemRandom, uploadsBytes: 48 * mebibyte })
  const slow = Array.from({ length: 5 }, () => hanging(4 * mebibyte))
  const stored: Promise<unknown>[] = []
  for (const upload of slow) {
    stored.push(blobs.put(upload.content, { bytesMax, owner: 'slow' }))
    await upload.reached
  }
  await expect(blobs.put(hanging(4 * mebibyte).content, { bytesMax, owner: 'slow' })).rejects.toMatchObject({
    code: 'rate-limit-exceeded',
  })
  const small = [...contentOf(60_000)]
  expect((await blobs.put(ofChunks(small), { bytesMax, owner: 'slow' })).size).toBe(60_000)
  const other = [...contentOf(17 * mebibyte)]
  expect((await blobs.put(ofChunks(other), { bytesMax, owner: 'other' })).sha256).toBe(sha256(other))
  for (const upload of slow) upload.end()
  await Promise.all(stored)
  expect((await blobs.put(ofChunks(other), { bytesMax, owner: 'slow' })).sha256).toBe(sha256(other))
  blobs.close()
})

test('fifteen uploads of one owner are stored at the same time, although each could use a second buffer', async () => {
  const blobs = await openS3Blobs(server.settings, { random: systemRandom })
  const uploads = Array.from({ length: 15 }, () => hanging(12 * mebibyte))
  const stored: Promise<{ readonly size: number }>[] = []
  for (const upload of uploads) {
    const put = blobs.put(upload.content, { bytesMax, owner: 'one' })
    stored.push(put)
    await Promise.race([upload.reached, put])
  }
  for (const upload of uploads) upload.end()
  expect((await Promise.all(stored)).map(({ size }) => size)).toEqual(uploads.map(() => 12 * mebibyte))
  blobs.close()
})

test('an upload of an owner without memory ends slow ones of the owner with most, and no others', async () => {
  let time = 0
  const blobs = await openS3Blobs(server.settings, {
    random: systemRandom,
    uploadsBytes: 96 * mebibyte,
    now: () => time,
  })
  const uploads = [10, 5, 2, 1, 1].flatMap((count, owner) =>
    Array.from({ length: count }, () => ({ ...hanging(4 * mebibyte), owner: `slow ${owner}` })),
  )
  const stored: Promise<unknown>[] = []
  for (const { content, reached, owner } of uploads) {
    time += 1
    const put = blobs.put(content, { bytesMax, owner })
    put.catch(() => undefined)
    stored.push(put)
    await Promise.race([reached, put])
  }
  const other = () => blobs.put(ofChunks([...contentOf(6 * mebibyte)]), { bytesMax, owner: 'other' })
  await expect(other()).rejects.toMatchObject({ code: 'rate-limit-exceeded' })
  time += 120_000
  expect((await other()).size).toBe(6 * mebibyte)
  for (const { end } of uploads) end()
  const ended = (await Promise.allSettled(stored)).map((one) => one.status === 'rejected' && one.reason.code)
  expect(ended).toEqual(uploads.map((_, index) => index < 2 && 'request-timeout'))
  blobs.close()
})

test('with memory for one part alone, content of several parts is stored exactly', async () => {
  const blobs = await openS3Blobs(server.settings, { random: systemRandom, uploadsBytes: 12 * mebibyte })
  const chunks = [...contentOf(23 * mebibyte + 5)]
  const { key, sha256: digest } = await blobs.put(ofChunks(chunks), { bytesMax, owner: 'one' })
  const read: Buffer[] = []
  for await (const chunk of (await blobs.open(key))?.content ?? []) read.push(Buffer.from(chunk))
  expect([digest, sha256(read)]).toEqual([sha256(chunks), sha256(chunks)])
  blobs.close()
})

async function* ofChunks(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

function sha256(chunks: readonly Uint8Array[]): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}
