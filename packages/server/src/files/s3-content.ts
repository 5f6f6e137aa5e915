import type { Readable } from 'node:stream'
import { freed } from '../platform/freed.ts'
import { giveBackRecentMemory } from '../platform/memory.ts'
import { Pour, type TakeBytes } from '../platform/pour.ts'

/** The HTTP client copies what the network brings; this much of it lies about at most. */
const lyingBytesMax = 4 * 2 ** 20

/** What the storage sends of an object. Poured, each piece is given back once it was taken: none waits for the collector. */
export class ObjectContent extends Pour {
  readonly #body: Readable
  #pieces: AsyncIterator<Uint8Array> | undefined

  constructor(body: Readable) {
    super()
    this.#body = body
    // Told to whoever reads; a connection that breaks before anybody does must not end the process.
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

  override async pour(take: TakeBytes): Promise<void> {
    try {
      let lying = 0
      for await (const piece of freed(this.#body)) {
        lying += piece.byteLength
        await take(piece)
        if (lying < lyingBytesMax) continue
        giveBackRecentMemory()
        lying = 0
      }
    } finally {
      this.destroy()
    }
  }
}
