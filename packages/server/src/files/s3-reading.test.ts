import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startS3 } from '../../test/files/s3-server.ts'
import { createFairSemaphore } from '../platform/fair-semaphore.ts'
import { systemRandom } from '../platform/random.ts'
import { ReusedBufferStream } from '../platform/reused-buffer-stream.ts'
import { type BlobKey, type BlobStore, openS3Blobs } from './index.ts'
import type { S3Options } from './s3.ts'

const bytesMax = 100 * 2 ** 20
/** More than the buffers of a connection can have. */
const largeBytes = 12 * 2 ** 20

let server: Awaited<ReturnType<typeof startS3>>
let key: BlobKey
let sha256: string

beforeAll(async () => {
  server = await startS3()
  const blobs = await openS3Blobs(server.settings, { random: systemRandom })
  const stored = await blobs.put(contentOf(largeBytes), { bytesMax })
  key = stored.key
  sha256 = stored.sha256
  blobs.close()
})
afterAll(() => server?.stop())

async function* contentOf(bytes: number): AsyncGenerator<Buffer> {
  for (let left = bytes; left > 0; left -= 100_000) yield Buffer.from(systemRandom.bytes(Math.min(left, 100_000)))
}

async function aStore(own: Partial<S3Options> = {}): Promise<BlobStore> {
  const blobs = await openS3Blobs(server.settings, { random: systemRandom, ...own })
  onTestFinished(() => blobs.close())
  return blobs
}

async function open(blobs: BlobStore, owner: string): Promise<ReusedBufferStream> {
  const content = (await blobs.open(key, undefined, owner))?.content
  if (!(content instanceof ReusedBufferStream)) throw new Error('no content')
  onTestFinished(() => void content.destroy())
  return content
}

test('sixty contents that nobody reads keep no upload, no other download and no deletion waiting', async () => {
  const blobs = await aStore()
  for (let count = 0; count < 60; count++) await open(blobs, 'slow')
  const small = await blobs.put(contentOf(1_000), { bytesMax, owner: 'other' })
  expect((await blobs.open(small.key, undefined, 'other'))?.size).toBe(1_000)
  await blobs.delete(small.key)
})

test('one owner has at most its share of the connections for downloads, and its next download waits for one of them', async () => {
  const blobs = await aStore({ readsMax: 9 })
  const [first] = await Promise.all(Array.from({ length: 4 }, () => open(blobs, 'slow')))
  let isOpen = false
  const fifth = open(blobs, 'slow').then(() => {
    isOpen = true
  })
  await open(blobs, 'other')
  await turn()
  expect(isOpen).toBe(false)
  first?.destroy()
  await fifth
})

test('ten owners with all slots that they may have leave a download to an eleventh', async () => {
  const turns = createFairSemaphore(64, { waitMsMax: 20, waitingMax: 1_000 })
  for (let owner = 0; owner < 10; owner++)
    await Promise.allSettled(Array.from({ length: 64 }, () => turns.take(`slow ${owner}`)))
  await expect(turns.take('eleventh')).resolves.toBeTypeOf('function')
  await expect(turns.take('slow 0')).rejects.toMatchObject({ code: 'service-unavailable' })
})

test('an empty range waits for a connection like a content, and is refused when it gets none in time', async () => {
  const blobs = await aStore({ readsMax: 1, waitMsMax: 20 })
  const content = await open(blobs, 'slow')
  const nothing = () => blobs.open(key, { offset: 0, length: 0 }, 'other')
  await expect(nothing()).rejects.toMatchObject({ code: 'service-unavailable' })
  content.destroy()
  expect((await nothing())?.size).toBe(largeBytes)
})

/** Writes a content whose reader stalls at the third piece, until `goOn`. */
async function stalledAt3(content: ReusedBufferStream, gone?: AbortSignal) {
  const hash = createHash('sha256')
  const [stalled, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let pieces = 0
  const written = content.writeTo(async (piece) => {
    hash.update(piece)
    pieces += 1
    if (pieces !== 3) return
    stalled.resolve()
    await goesOn.promise
  }, gone)
  await stalled.promise
  return { written, goOn: goesOn.resolve, sha256: () => hash.digest('hex') }
}

test('a reader that stalls leaves its connection to others, and is sent the rest when it goes on', async () => {
  const blobs = await aStore({ readsMax: 1, stalledMs: 20 })
  const slow = await stalledAt3(await open(blobs, 'slow'))
  const other = await open(blobs, 'other')
  other.destroy()
  slow.goOn()
  await slow.written
  expect(slow.sha256()).toBe(sha256)
})

test('a reader that goes on waits for a connection as long as it takes, and is not cut', async () => {
  const blobs = await aStore({ readsMax: 1, stalledMs: 20, waitMsMax: 200 })
  const slow = await stalledAt3(await open(blobs, 'slow'))
  const other = await open(blobs, 'other')
  slow.goOn()
  // One after the other, so that twice the wait of a reader that begins has passed.
  for (let refused = 0; refused < 2; refused += 1)
    await expect(blobs.open(key, undefined, 'slow')).rejects.toMatchObject({ code: 'service-unavailable' })
  other.destroy()
  await slow.written
  expect(slow.sha256()).toBe(sha256)
})

test('a reader that disconnects while it waits for a connection ends at once and takes none', async () => {
  const blobs = await aStore({ readsMax: 1, stalledMs: 20 })
  const leaving = new AbortController()
  const slow = await stalledAt3(await open(blobs, 'slow'), leaving.signal)
  const other = await open(blobs, 'other')
  slow.goOn()
  await turn()
  const reason = new Error('the reader has left')
  leaving.abort(reason)
  await expect(slow.written).rejects.toBe(reason)
  other.destroy()
  await open(blobs, 'next')
})

/** A proxy of the storage by which an object has another content once it was replaced: a condition on its ETag is 412 then. */
async function aReplacingStorage() {
  let isReplaced = false
  const proxy = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming
    if (isReplaced && headers['if-match'] !== undefined) return void outgoing.writeHead(412).end()
    const forwarded = request(server.settings.endpoint + url, { method: method ?? 'GET', headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing).once('close', () => response.destroy())
    })
    forwarded.once('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  const endpoint = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  const blobs = await openS3Blobs(
    { ...server.settings, endpoint },
    { random: systemRandom, readsMax: 1, stalledMs: 20 },
  )
  onTestFinished(() => {
    blobs.close()
    proxy.closeAllConnections()
    proxy.close()
  })
  return { blobs, replace: () => (isReplaced = true) }
}

test('the rest of a content that was replaced meanwhile is not sent', async () => {
  const { blobs, replace } = await aReplacingStorage()
  const slow = await stalledAt3(await open(blobs, 'slow'))
  const other = await open(blobs, 'other')
  other.destroy()
  replace()
  slow.goOn()
  await expect(slow.written).rejects.toMatchObject({ code: 'file-storage-unavailable' })
})
