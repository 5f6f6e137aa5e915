import { IncomingMessage } from 'node:http'
import { countChunks } from '@purser/protocol'

/** Most chunks of a request's body with fewer than 64 bytes on average. */
export const tinyChunksMax = 1_000

/**
 * A request that stops receiving its body once that has too many tiny chunks. The parser reports each chunk as a buffer of its own, also before
 * anything reads the body, so the count is here.
 */
export class CountedRequest extends IncomingMessage {
  readonly #chunks = countChunks(tinyChunksMax)
  #isRefused = false
  #refuse: (() => void) | undefined

  /** Calls `refuse` when the body has too many chunks. */
  limitChunks(refuse: () => void): void {
    this.#refuse = refuse
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Uint8Array)) return super.push(chunk, encoding)
    if (!this.#isRefused && this.#chunks.take(chunk.length)) return super.push(chunk, encoding)
    if (!this.#isRefused) {
      this.#isRefused = true
      this.#refuse?.()
    }
    // Node pauses the connection.
    return false
  }
}
