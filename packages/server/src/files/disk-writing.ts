import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { type BufferBudget, smallBufferBytes } from './buffers.ts'
import { BlobTooLarge, fail } from './errors.ts'
import type { RunningHash } from './hashing.ts'

/** Bytes that are written and hashed at once, while there is memory for it. A disk write costs the same for a small network chunk. */
const slotBytes = 256 * 1024
/** Most buffers of an upload: one is filled while the others are written and hashed. */
const slotsMax = 4
/** Buffers that are kept for the next upload. */
const sparesMax = 8
/** Data is synced to disk after this many bytes during an upload, so that the final sync is short. */
const syncBytes = 32 * 2 ** 20

type Slot = Uint8Array<SharedArrayBuffer>

/** Reusable buffers for uploads. */
export interface WritingMemory {
  readonly spares: Slot[]
  readonly startHash: () => RunningHash
  /** The memory of the large buffers of uploads in progress. */
  readonly buffers: BufferBudget
}

export interface Written {
  readonly size: number
  readonly sha256: string
}

/**
 * Writes content to a file and hashes it in another thread. Copies each chunk before reading the next, so that the sender may reuse its memory.
 * Starts reading before any await, because a Node stream that fails without a listener ends the process. On an error it rejects after all writes
 * have ended.
 */
export async function receive(
  content: AsyncIterable<Uint8Array>,
  openPart: () => Promise<FileHandle>,
  { bytesMax, memory }: { readonly bytesMax: number; readonly memory: WritingMemory },
): Promise<Written> {
  let size = 0
  let part: PartFile | undefined
  try {
    for await (const chunk of content) {
      size += chunk.byteLength
      // Written this way so that a limit of NaN rejects everything.
      if (!(size <= bytesMax)) throw new BlobTooLarge(bytesMax)
      part ??= new PartFile(await openPart(), memory)
      await part.take(chunk)
    }
    return { size, sha256: (await part?.end()) ?? createHash('sha256').digest('hex') }
  } catch (fault) {
    await part?.giveUp()
    throw fault
  }
}

class PartFile {
  readonly #handle: FileHandle
  readonly #memory: WritingMemory
  /** Releases the memory of large buffers; undefined for an upload with small ones. */
  readonly #release: (() => void) | undefined
  readonly #slotBytes: number
  readonly #slotsMax: number
  /** This upload's buffers in use, oldest first, each with its pending work. */
  readonly #slots: { readonly slot: Slot; readonly busy: Promise<unknown> }[] = []
  #filling: Slot
  #filled = 0
  #written = 0
  #hash: RunningHash | undefined
  #syncing: Promise<void> | undefined
  #synced = 0

  constructor(handle: FileHandle, memory: WritingMemory) {
    this.#handle = handle
    this.#memory = memory
    this.#release = memory.buffers.take((slotsMax + 1) * slotBytes)
    this.#slotBytes = this.#release === undefined ? smallBufferBytes : slotBytes
    this.#slotsMax = this.#release === undefined ? 1 : slotsMax
    this.#filling = this.#newSlot()
  }

  async take(chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (this.#filled === this.#slotBytes) await this.#turn()
      const some = chunk.subarray(taken, taken + this.#slotBytes - this.#filled)
      this.#filling.set(some, this.#filled)
      this.#filled += some.byteLength
      taken += some.byteLength
    }
  }

  /** Returns the SHA-256 of the content after all of it is written. */
  async end(): Promise<string> {
    const rest = this.#filling.subarray(0, this.#filled)
    // Content that fits into one buffer is hashed faster here than in another thread.
    const isSmall = this.#hash === undefined
    const writing = isSmall ? onDisk(writeAll(this.#handle, rest, 0)) : this.#send(rest)
    const sha256 = isSmall ? createHash('sha256').update(rest).digest('hex') : this.#hash?.digest()
    const [response] = await Promise.all([sha256, writing, this.#syncing, ...this.#slots.map(({ busy }) => busy)])
    if (response === undefined) throw new Error('no digest')
    this.#hash = undefined
    if (this.#release !== undefined) {
      const own = [this.#filling, ...this.#slots.map(({ slot }) => slot)]
      this.#memory.spares.push(...own.slice(0, sparesMax - this.#memory.spares.length))
      this.#release()
    }
    return response
  }

  /** Abandons the upload. Its buffers are not reused, because the hashing thread may still read them. */
  async giveUp(): Promise<void> {
    this.#hash?.drop()
    await Promise.allSettled([this.#syncing, ...this.#slots.map(({ busy }) => busy)])
    this.#release?.()
  }

  /** Starts writing the full buffer and continues with the oldest one. */
  async #turn(): Promise<void> {
    const busy = this.#send(this.#filling)
    // An error is reported when the buffer is needed again or at the end; this prevents an unhandled rejection until then.
    busy.catch(() => undefined)
    this.#slots.push({ slot: this.#filling, busy })
    this.#syncNow()
    const next = this.#slots.length < this.#slotsMax ? undefined : this.#slots.shift()
    await next?.busy
    this.#filling = next?.slot ?? this.#newSlot()
    this.#filled = 0
  }

  async #send(bytes: Uint8Array): Promise<void> {
    const at = this.#written
    this.#written += bytes.byteLength
    this.#hash ??= this.#memory.startHash()
    await Promise.all([this.#hash.update(bytes), onDisk(writeAll(this.#handle, bytes, at))])
  }

  #syncNow(): void {
    if (this.#syncing !== undefined || this.#written - this.#synced < syncBytes) return
    this.#synced = this.#written
    this.#syncing = onDisk(this.#handle.datasync()).then(() => {
      this.#syncing = undefined
    })
    this.#syncing.catch(() => undefined)
  }

  #newSlot(): Slot {
    const spare = this.#release === undefined ? undefined : this.#memory.spares.pop()
    return spare ?? new Uint8Array(new SharedArrayBuffer(this.#slotBytes))
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.byteLength; ) {
    const left = bytes.byteLength - written
    const { bytesWritten } = await handle.write(bytes, written, left, at + written)
    written += bytesWritten
  }
}

/** Turns disk errors into the problem `file-storage-unavailable`, which contains no path. Do not use it for errors of the caller's stream. */
export async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw fail('file-storage-unavailable', {}, cause)
  }
}

/** Returns undefined when the file or directory does not exist. */
export async function undefinedIfMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
