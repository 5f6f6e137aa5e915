import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { onDisk } from './disk-fault.ts'
import { BlobTooLarge } from './errors.ts'
import type { RunningHash } from './hashing.ts'

/** Bytes that are written and hashed at once: a call to the disk costs the same for a socket's chunk. */
const slotBytes = 256 * 1024
/** One is filled while the others are written and hashed. */
const slotsMax = 4
/** Slots that are kept for the next upload. */
const sparesMax = 8
/** The disk begins with what is there while more comes in, so that the end waits for little. */
const syncBytes = 32 * 2 ** 20

type Slot = Uint8Array<SharedArrayBuffer>

/** The memory that uploads go through, kept for the next ones. */
export interface WritingMemory {
  readonly spares: Slot[]
  readonly startHash: () => RunningHash
}

export interface Written {
  readonly size: number
  readonly sha256: string
}

/**
 * Writes a content to a file and hashes it in another thread meanwhile; its bytes are copied before the next chunk is asked for,
 * so that a sender may use a chunk's memory again. Reading begins before anything is awaited: a Node stream that breaks while
 * nobody listens to it ends the process. On any fault it answers once nothing is being written any more.
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
      // Said this way round, a limit that is no number lets nothing through.
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
  /** Those of this upload, the next one to be filled first, each with what still reads it. */
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
    this.#filling = this.#newSlot()
  }

  async take(chunk: Uint8Array): Promise<void> {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (this.#filled === slotBytes) await this.#turn()
      const some = chunk.subarray(taken, taken + slotBytes - this.#filled)
      this.#filling.set(some, this.#filled)
      this.#filled += some.byteLength
      taken += some.byteLength
    }
  }

  /** Answers the SHA-256 of the whole once all of it is written. */
  async end(): Promise<string> {
    const rest = this.#filling.subarray(0, this.#filled)
    // What fits in one slot is hashed sooner than another thread could be asked.
    const isSmall = this.#hash === undefined
    const writing = isSmall ? onDisk(writeAll(this.#handle, rest, 0)) : this.#send(rest)
    const sha256 = isSmall ? createHash('sha256').update(rest).digest('hex') : this.#hash?.digest()
    const [answer] = await Promise.all([sha256, writing, this.#syncing, ...this.#slots.map(({ busy }) => busy)])
    if (answer === undefined) throw new Error('no digest')
    this.#hash = undefined
    const own = [this.#filling, ...this.#slots.map(({ slot }) => slot)]
    this.#memory.spares.push(...own.slice(0, sparesMax - this.#memory.spares.length))
    return answer
  }

  /** Its slots are not used again: what reads them may not have ended. */
  async giveUp(): Promise<void> {
    this.#hash?.drop()
    await Promise.allSettled([this.#syncing, ...this.#slots.map(({ busy }) => busy)])
  }

  /** Sends the slot that is full on its way and goes on with the one that has been away for longest. */
  async #turn(): Promise<void> {
    const busy = this.#send(this.#filling)
    // Told when its slot is needed again, or at the end; until then nobody listens.
    busy.catch(() => undefined)
    this.#slots.push({ slot: this.#filling, busy })
    this.#syncNow()
    const next = this.#slots.length < slotsMax ? undefined : this.#slots.shift()
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
    return this.#memory.spares.pop() ?? new Uint8Array(new SharedArrayBuffer(slotBytes))
  }
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let written = 0; written < bytes.byteLength; ) {
    const left = bytes.byteLength - written
    const { bytesWritten } = await handle.write(bytes, written, left, at + written)
    written += bytesWritten
  }
}
