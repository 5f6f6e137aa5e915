import { close, fstat, read } from 'node:fs'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { ReusedBufferStream, type TakeBytes } from '../platform/reused-buffer-stream.ts'
import { type BufferBudget, smallBufferBytes } from './buffers.ts'
import { onDisk } from './disk-writing.ts'
import { BlobRangeOutside } from './errors.ts'
import type { ByteRange, OpenedBlob } from './port.ts'

/** Larger chunks read no faster and are garbage-collected later: with 256 KiB a process uses about 40 MB more. */
const readChunkBytes = 64 * 1024
/** Size of each of the two buffers of `writeTo`, while there is memory for it: one is filled while the other is consumed. */
const writeToBytes = 256 * 1024

const readInto = promisify(read)
const closeDescriptor = promisify(close)

/** Opens a file's content or a range of it, whose large buffers are of the budget. The descriptor is closed with the content, or here on an error. */
export async function readFrom(
  descriptor: number,
  range: ByteRange | undefined,
  buffers: BufferBudget,
): Promise<OpenedBlob> {
  const { size, offset, length } = await partOf(descriptor, range).catch(async (error: unknown) => {
    await closeDescriptor(descriptor)
    throw error
  })
  if (length > 0) return { size, content: new FilePart(descriptor, { offset, length }, buffers) }
  await onDisk(closeDescriptor(descriptor))
  return { size, content: Readable.from([]) }
}

async function partOf(
  descriptor: number,
  range: ByteRange | undefined,
): Promise<ByteRange & { readonly size: number }> {
  const { size } = await onDisk(promisify(fstat)(descriptor))
  const { offset, length } = range ?? { offset: 0, length: size }
  if (!isWithin(offset, length, size)) throw new BlobRangeOutside(size)
  return { size, offset, length }
}

function isWithin(offset: number, length: number, size: number): boolean {
  return [offset, length].every((count) => Number.isSafeInteger(count) && count >= 0) && offset + length <= size
}

/** Uses a bare descriptor: a stream that is never read then leaks a descriptor, whereas a leaked `FileHandle` would end the process. */
class FilePart extends ReusedBufferStream {
  readonly #descriptor: number
  readonly #buffers: BufferBudget
  #at: number
  #left: number
  /** Never rejects. The descriptor is closed only after the read in progress, since a closed descriptor may be reused for another file. */
  #reading: Promise<unknown> = Promise.resolve()

  constructor(descriptor: number, { offset, length }: ByteRange, buffers: BufferBudget) {
    super({ highWaterMark: readChunkBytes })
    this.#descriptor = descriptor
    this.#buffers = buffers
    this.#at = offset
    this.#left = length
  }

  override _read(): void {
    const memory = Buffer.allocUnsafeSlow(Math.min(readChunkBytes, Math.max(1, this.#left)))
    this.#next(memory).then(
      (some) => this.push(some.byteLength > 0 ? some : null),
      (fault) => this.destroy(fault),
    )
  }

  override _destroy(fault: Error | null, callback: (fault?: Error | null) => void): void {
    void this.#reading.then(() => close(this.#descriptor, (closing) => callback(fault ?? closing)))
  }

  override async writeTo(take: TakeBytes): Promise<void> {
    const release = this.#buffers.take(2 * writeToBytes)
    const bytes = Math.min(release === undefined ? smallBufferBytes : writeToBytes, this.#left)
    let [filling, taken] = [Buffer.allocUnsafeSlow(bytes), Buffer.allocUnsafeSlow(this.#left > bytes ? bytes : 1)]
    try {
      let some = await this.#next(filling)
      while (some.byteLength > 0) {
        ;[filling, taken] = [taken, filling]
        const coming = this.#next(filling)
        await Promise.all([take(some), coming])
        some = await coming
      }
    } finally {
      release?.()
      this.destroy()
    }
  }

  /** Reads the next bytes of the range into this memory; empty at its end. */
  #next(memory: Buffer): Promise<Buffer> {
    const reading = onDisk(this.#fill(memory))
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #fill(memory: Buffer): Promise<Buffer> {
    const wanted = Math.min(memory.byteLength, this.#left)
    if (wanted === 0) return memory.subarray(0, 0)
    const { bytesRead } = await readInto(this.#descriptor, memory, 0, wanted, this.#at)
    if (bytesRead === 0) throw new Error('a file is shorter than its content')
    this.#at += bytesRead
    this.#left -= bytesRead
    return memory.subarray(0, bytesRead)
  }
}
