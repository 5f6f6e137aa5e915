import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startS3 } from '../../test/files/s3-server.ts'
import { systemRandom } from '../platform/random.ts'
import { newBlobKey, openMarks, openS3Blobs } from './index.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'purser-marks-'))
let s3: Awaited<ReturnType<typeof startS3>>

beforeAll(async () => {
  s3 = await startS3()
})
afterAll(async () => {
  await s3?.stop()
  rmSync(directory, { recursive: true, force: true })
})

const places = {
  'a directory': () => ({ directory }),
  'an S3 storage': () => ({ s3: s3.settings }),
}

test.each(Object.entries(places))(
  '%s keeps the marks of each deployment separate until they are removed',
  async (_, place) => {
    const marks = await openMarks(place(), { random: systemRandom })
    expect(await marks.list('one')).toEqual([])
    for (const name of ['a', 'b', 'c']) expect(await marks.create('one', name)).toBe('created')
    await marks.create('other', 'a')
    const again = await openMarks(place(), { random: systemRandom })
    expect((await again.list('one')).toSorted()).toEqual(['a', 'b', 'c'])
    await again.remove('one', ['a', 'b', 'none'])
    expect([await marks.list('one'), await marks.list('other')]).toEqual([['c'], ['a']])
    again.close()
    marks.close()
  },
)

test('of concurrent attempts to create one mark in a directory, exactly one succeeds', async () => {
  const marks = await openMarks({ directory }, { random: systemRandom })
  const made = await Promise.all(Array.from({ length: 20 }, () => marks.create('race', 'a')))
  expect(made.toSorted()).toEqual(['created', ...Array(19).fill('taken')])
})

test('a storage that lists in pages returns all marks', async () => {
  const marks = await openMarks({ s3: s3.settings }, { random: systemRandom })
  const names = Array.from({ length: 1_100 }, (_, index) => String(index).padStart(4, '0'))
  for (let from = 0; from < names.length; from += 50)
    await Promise.all(names.slice(from, from + 50).map((name) => marks.create('many', name)))
  expect((await marks.list('many')).toSorted()).toEqual(names)
  marks.close()
})

/** The S3 files of a storage that responds by this function, and that is silent after 50 ms, or `silentMs`. */
async function blobsOf(respond: RequestListener, silentMs = 50) {
  const storage = createServer(respond)
  await new Promise<void>((resolve) => storage.listen(0, '127.0.0.1', resolve))
  const settings = { ...s3.settings, endpoint: `http://127.0.0.1:${(storage.address() as AddressInfo).port}` }
  const blobs = await openS3Blobs(settings, { random: systemRandom, silentMs })
  onTestFinished(() => {
    blobs.close()
    storage.closeAllConnections()
    storage.close()
  })
  return blobs
}

test('a storage that takes requests and sends nothing fails each of them, after it was repeated', async () => {
  let requests = 0
  const blobs = await blobsOf(() => {
    requests += 1
  })
  const unavailable = { code: 'file-storage-unavailable' }
  async function* content() {
    yield Buffer.from('content')
  }
  await expect(blobs.put(content(), { bytesMax: 100 })).rejects.toMatchObject(unavailable)
  expect(requests).toBe(4)
  await expect(blobs.delete(newBlobKey(systemRandom))).rejects.toMatchObject(unavailable)
  await expect(blobs.open(newBlobKey(systemRandom))).rejects.toMatchObject(unavailable)
})

test('requests wait for their connections while slow ones use all fifty, for longer than the storage may be silent', async () => {
  const slow: ServerResponse[] = []
  let isSlow = true
  const blobs = await blobsOf((_, response) => {
    if (isSlow) slow.push(response)
    else response.writeHead(204).end()
  }, 300)
  const deletions = Promise.allSettled(Array.from({ length: 60 }, () => blobs.delete(newBlobKey(systemRandom))))
  await expect.poll(() => slow.length).toBe(50)
  const begunMs = performance.now()
  const passedMs = (): number => {
    for (const response of slow) response.writeProcessing()
    return performance.now() - begunMs
  }
  // Four attempts of 300 ms, with the pauses between them.
  await expect.poll(passedMs, { interval: 20, timeout: 10_000 }).toBeGreaterThan(2_500)
  isSlow = false
  for (const response of slow) response.writeHead(204).end()
  expect((await deletions).filter(({ status }) => status === 'rejected')).toEqual([])
})
