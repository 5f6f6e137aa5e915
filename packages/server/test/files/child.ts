import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { openDiskBlobs } from '../../src/files/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { ReusedBufferStream } from '../../src/platform/reused-buffer-stream.ts'

/**
 * A separate process that uses the disk store: `round-trip <directory> <bytes>`, `abandon <directory>` or `hang
 * <directory>`.
 */
const [task = '', directory = '', bytes = '0'] = process.argv.slice(2)
const chunkBytes = 65_536
const store = await openDiskBlobs({ directory, clock: systemClock, random: systemRandom })

/** As a socket delivers it: each chunk in separate memory, no two alike. */
async function* upload(size: number) {
  for (let sent = 0; sent < size; sent += chunkBytes) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, size - sent), sent / chunkBytes)
    chunk.writeUInt32LE((sent / chunkBytes) >>> 0)
    yield chunk
    // As our server does: memory that waits for the collector would be counted as the store's.
    chunk.buffer.transfer(0)
  }
}

async function roundTrip(size: number): Promise<void> {
  const stored = await store.put(upload(size), { bytesMax: size })
  const opened = await store.open(stored.key)
  const hash = createHash('sha256')
  let read = 0
  if (!(opened?.content instanceof ReusedBufferStream)) throw new Error('a content of the disk cannot be streamed')
  await opened.content.writeTo(async (bytes) => {
    read += bytes.length
    hash.update(bytes)
  })
  const rssMax = peakMemory()
  console.log(JSON.stringify({ ...stored, read, readSha256: hash.digest('hex'), rssMax }))
}

/** Some megabytes arrive, then nothing, until this process is killed. */
async function* stalled() {
  yield* upload(4 * 1024 * 1024)
  console.log('stalled')
  await new Promise((resolve) => setTimeout(resolve, 60_000))
}

/** Collects unreachable objects, if possible. */
async function abandon(): Promise<void> {
  const { key } = await store.put(upload(1_000_000), { bytesMax: 1_000_000 })
  for (let times = 0; times < 20; times++) {
    await store.open(key)
    const opened = await store.open(key)
    opened?.content.destroy()
    await store.open(key, { offset: 0, length: 2_000_000 }).catch(() => undefined)
    const silent = new Readable({ read() {} })
    silent.push(Buffer.alloc(100_000))
    store.put(silent, { bytesMax: 1_000_000 }).catch(() => undefined)
  }
  for (let times = 0; times < 20; times++) {
    globalThis.gc?.()
    await setImmediate()
  }
  console.log(JSON.stringify({ collected: globalThis.gc !== undefined }))
}

if (task === 'abandon') await abandon()
else if (task === 'round-trip') await roundTrip(Number(bytes))
else await store.put(stalled(), { bytesMax: Number.MAX_SAFE_INTEGER })

/**
 * The largest resident memory of this process, in bytes. `resourceUsage().maxRSS` would be the parent's where the
 * parent is larger: Linux carries that figure through fork and exec (getrusage(2)).
 */
function peakMemory(): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  if (kilobytes === undefined) throw new Error('/proc/self/status has no VmHWM')
  return Number(kilobytes) * 1024
}
