import { IncomingMessage } from 'node:http'
import { countChunks } from '@purser/protocol'

/** Most chunks of a request's body with fewer than 64 bytes on average. A streamed body may have more, slowly. */
export const tinyChunksMax = 1_000
/** Further tiny chunks for each millisecond without reading: one costs three microseconds, so this is three hundredths of a processor. */
const chunksPerMs = 10

/**
 * A request that limits how many tiny chunks of its body are read. The parser reports each chunk as a buffer of its own, also before anything
 * reads the body, so the count is here.
 */
export class CountedRequest extends IncomingMessage {
  readonly #chunks = countChunks(tinyChunksMax)
  #rule: { readonly refuse: (() => void) | undefined } | undefined
  #isExceeded = false
  #isRefused = false
  /** Tiny chunks beyond the limit since the last rest. */
  #since = 0

  /** Stops receiving a body with too many tiny chunks, and calls `refuse` once. */
  refuseTinyChunks(refuse: () => void): void {
    this.#rule = { refuse }
    if (this.#isExceeded) this.#refuse(refuse)
  }

  /** Receives tiny chunks beyond the limit slowly, for an operation that streams the body, such as an upload that is written line by line. */
  slowTinyChunks(): void {
    this.#rule = { refuse: undefined }
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Uint8Array) || this.#chunks.take(chunk.length)) return super.push(chunk, encoding)
    this.#isExceeded = true
    if (this.#rule?.refuse !== undefined) {
      this.#refuse(this.#rule.refuse)
      return false
    }
    this.#since += 1
    super.push(chunk, encoding)
    // Node pauses the connection until the next call of `_read`.
    return false
  }

  override _read(size: number): void {
    const restMs = Math.floor(this.#since / chunksPerMs)
    this.#since -= restMs * chunksPerMs
    if (restMs === 0) super._read(size)
    else setTimeout(() => super._read(size), restMs)
  }

  #refuse(refuse: () => void): void {
    if (this.#isRefused) return
    this.#isRefused = true
    refuse()
  }
}
