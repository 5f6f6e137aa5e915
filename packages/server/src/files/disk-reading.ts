import { close, fstat, read } from 'node:fs'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { Pour, type TakeBytes } from '../platform/pour.ts'
import { onDisk } from './disk-fault.ts'
import { BlobRangeOutside } from './errors.ts'
import type { ByteRange, OpenedBlob } from './port.ts'

/** Larger chunks read no faster and wait longer for the collector: at 256 KiB a process holds some 40 MB more. */
const readChunkBytes = 64 * 1024
/** Of each of the two memories that a content is poured through: one is filled while the other is taken. */
const pourBytes = 256 * 1024

const readInto = promisify(read)
const closeDescriptor = promisify(close)

/** Opens the content of a file, or a part of it; the descriptor is closed with the content, or here where that is refused. */
export async function readFrom(descriptor: number, range: ByteRange | undefined): Promise<OpenedBlob> {
  const { size, offset, length } = await partOf(descriptor, range).catch(async (error: unknown) => {
    await closeDescriptor(descriptor)
    throw error
  })
  if (length > 0) return { size, content: new FilePart(descriptor, { offset, length }) }
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

/** By the bare descriptor: a stream that somebody forgot to read then costs a descriptor, and with a handle the process. */
class FilePart extends Pour {
  readonly #descriptor: number
  #at: number
  #left: number
  /** Never rejects. A descriptor that is closed while it is read may be another file's by then. */
  #reading: Promise<unknown> = Promise.resolve()

  constructor(descriptor: number, { offset, length }: ByteRange) {
    super({ highWaterMark: readChunkBytes })
    this.#descriptor = descriptor
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

  override async pour(take: TakeBytes): Promise<void> {
    const bytes = Math.min(pourBytes, this.#left)
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
      this.destroy()
    }
  }

  /** The next bytes of the part, in this memory; none at its end. */
  #next(memory: Buffer): Promise<Buffer> {
    const reading = onDisk(this.#fill(memory))
    this.#reading = reading.catch(() => undefined)
    return reading
  }

  async #fill(memory: Buffer): Promise<Buffer> {
    const wanted = Math.min(memory.byteLength, this.#left)
    if (wanted === 0) return memory.subarray(0, 0)
    const { bytesRead } = await readInto(this.#descriptor, memory, 0, wanted, this.#at)
    if (bytesRead === 0) throw new Error('a file ended before its content did')
    this.#at += bytesRead
    this.#left -= bytesRead
    return memory.subarray(0, bytesRead)
  }
}
