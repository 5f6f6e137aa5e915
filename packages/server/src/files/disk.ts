import { type Dir, open as openDescriptor } from 'node:fs'
import { type FileHandle, mkdir, open, opendir, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Clock, instantOf } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'
import { createBufferBudget } from './buffers.ts'
import { readFrom } from './disk-reading.ts'
import { onDisk, receive, undefinedIfMissing, type WritingMemory } from './disk-writing.ts'
import { createHashing } from './hashing.ts'
import { type BlobKey, type BlobStore, isBlobKey, newBlobKey } from './port.ts'

export interface DiskOptions {
  /** An absolute path on one filesystem. Read access to it gives access to every file. */
  readonly directory: string
  readonly clock: Clock
  readonly random: Random
}

const listMax = 500
const partialPattern = /^(\d{1,15})-blob_[0-9a-f]{32}$/

/**
 * The blob port on a local disk: `blobs/ab/blob_ab…` contains complete content, `partial/<unix ms>-blob_…` uploads in progress. Content is renamed
 * from one to the other after its bytes are synced to disk. Any number of processes may share the directory.
 */
export async function openDiskBlobs({ directory, clock, random }: DiskOptions): Promise<BlobStore> {
  const whole = path.join(directory, 'blobs')
  const partial = path.join(directory, 'partial')
  for (const made of [whole, partial]) await mkdir(made, { recursive: true, mode: 0o700 })
  // Also keeps the handles referenced, because Node ends a process when an open handle is garbage-collected.
  const receiving = new Map<string, FileHandle | undefined>()

  const memory: WritingMemory = { spares: [], startHash: createHashing(), buffers: createBufferBudget() }
  const reading = createBufferBudget()
  const pathOf = (key: BlobKey): string => {
    if (!isBlobKey(key)) throw new TypeError('not a blob key')
    return path.join(whole, key.slice(5, 7), key)
  }

  return {
    async put(content, { bytesMax, key = newBlobKey(random) }) {
      const target = pathOf(key)
      const name = `${clock.now().getTime()}-${key}`
      const part = path.join(partial, name)
      let handle: FileHandle | undefined
      const openPart = async (): Promise<FileHandle> => {
        handle ??= await onDisk(open(part, 'wx', 0o600))
        receiving.set(name, handle)
        return handle
      }
      receiving.set(name, undefined)
      try {
        const received = await receive(content, openPart, { bytesMax, memory })
        await onDisk(finish(await openPart(), clock))
        await onDisk(moveInto(part, target))
        return { key, ...received }
      } catch (error) {
        // `discardPartial` later removes a file that cannot be removed now; the first error is the one to report.
        await handle?.close().catch(() => undefined)
        if (handle !== undefined) await rm(part, { force: true }).catch(() => undefined)
        throw error
      } finally {
        receiving.delete(name)
      }
    },

    async open(key, range) {
      const descriptor = await onDisk(undefinedIfMissing(promisify(openDescriptor)(pathOf(key), 'r')))
      return descriptor === undefined ? undefined : readFrom(descriptor, range, reading)
    },

    async delete(key) {
      await onDisk(rm(pathOf(key), { force: true }))
    },

    async *list(before) {
      let keys: BlobKey[] = []
      for await (const fan of entriesOf(whole)) {
        for await (const name of entriesOf(path.join(whole, fan))) {
          if (!isBlobKey(name) || !(await isOlder(pathOf(name), before))) continue
          keys.push(name)
          if (keys.length < listMax) continue
          yield keys
          keys = []
        }
      }
      if (keys.length > 0) yield keys
    },

    async discardPartial(before, stopping) {
      let discarded = 0
      for await (const name of entriesOf(partial)) {
        if (stopping?.aborted === true) break
        const [, started] = partialPattern.exec(name) ?? []
        if (started === undefined || receiving.has(name) || instantOf(Number(started)) >= before) continue
        await onDisk(rm(path.join(partial, name), { force: true }))
        discarded += 1
      }
      return discarded
    },
  }
}

/** Sets the content's age by our clock, not the filesystem's. */
async function finish(handle: FileHandle, clock: Clock): Promise<void> {
  await handle.utimes(clock.now(), clock.now())
  await handle.sync()
  await handle.close()
}

async function moveInto(part: string, target: string): Promise<void> {
  const fan = path.dirname(target)
  const made = await mkdir(fan, { recursive: true, mode: 0o700 })
  if (made !== undefined) await syncDirectory(path.dirname(fan))
  // An existing key means that the random source repeats itself; failing is better than replacing another file.
  if ((await undefinedIfMissing(stat(target))) !== undefined) throw new Error('a new blob key already exists')
  await rename(part, target)
  await syncDirectory(fan)
}

/** Without it, content may survive a power loss but its name may not. Not supported on Windows. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function isOlder(file: string, before: Date): Promise<boolean> {
  const found = await onDisk(undefinedIfMissing(stat(file)))
  return found !== undefined && found.mtime < before
}

/** The names in a directory, read incrementally. */
async function* entriesOf(directory: string): AsyncIterable<string> {
  const entries: Dir | undefined = await onDisk(undefinedIfMissing(opendir(directory)))
  if (entries === undefined) return
  for await (const { name } of entries) yield name
}
