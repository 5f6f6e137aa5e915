import type { Readable } from 'node:stream'
import { freed } from '../platform/freed.ts'
import { giveBackRecentMemory } from '../platform/memory.ts'
import { ReusedBufferStream, type TakeBytes } from '../platform/reused-buffer-stream.ts'

/** Memory is returned to the system after this many bytes, because the HTTP client copies network data. */
const unfreedBytesMax = 4 * 2 ** 20

/** The content of an S3 object. With `writeTo`, each chunk's memory is freed once it was consumed, without waiting for garbage collection. */
export class ObjectContent extends ReusedBufferStream {
  readonly #body: Readable
  #pieces: AsyncIterator<Uint8Array> | undefined

  constructor(body: Readable) {
    super()
    this.#body = body
    // The reader gets the error; this prevents a connection error before the first read from ending the process.
    body.on('error', () => undefined)
  }

  override _read(): void {
    this.#pieces ??= this.#body[Symbol.asyncIterator]()
    this.#pieces.next().then(
      ({ done, value }) => this.push(done === true ? null : value),
      (fault) => this.destroy(fault),
    )
  }

  override _destroy(fault: Error | null, callback: (fault?: Error | null) => void): void {
    this.#body.destroy()
    callback(fault)
  }

  override async writeTo(take: TakeBytes): Promise<void> {
    try {
      let unfreed = 0
      for await (const piece of freed(this.#body)) {
        unfreed += piece.byteLength
        await take(piece)
        if (unfreed < unfreedBytesMax) continue
        giveBackRecentMemory()
        unfreed = 0
      }
    } finally {
      this.destroy()
    }
  }
}
