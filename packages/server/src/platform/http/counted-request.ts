import { IncomingMessage } from 'node:http'
import { countChunks } from '@purser/protocol'

/** Most chunks of a request's body with fewer than 64 bytes on average. A streamed body may have more, slowly. */
export const tinyChunksMax = 1_000

/** The treatment of a body with too many tiny chunks. */
export interface ChunkRule {
  /** Sends the refusal. Called once; nothing more of the body is received then. */
  readonly refuse: () => void
  /** Returns how many milliseconds the connection pauses for so many tiny chunks; undefined if the request is refused. Without it, it is refused at once. */
  readonly pauseFor?: ((chunks: number) => number | undefined) | undefined
}

/**
 * A request that limits how many tiny chunks of its body are read. The parser reports each chunk as a buffer of its own, also before anything
 * reads the body, so the count is here.
 */
export class CountedRequest extends IncomingMessage {
  readonly #chunks = countChunks(tinyChunksMax)
  #rule: ChunkRule | undefined
  /** Tiny chunks beyond the limit since the last pause. */
  #since = 0
  #isRefused = false
  #isPaused = false

  /** Stops receiving a body with too many tiny chunks, or receives them slowly if the rule has pauses, as for an upload that is written line by line. */
  limitTinyChunks(rule: ChunkRule): void {
    this.#rule = rule
    if (this.#since > 0 && rule.pauseFor === undefined) this.#refuse(rule)
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Uint8Array)) return super.push(chunk, encoding)
    if (this.#isRefused) return false
    if (this.#chunks.take(chunk.length)) return super.push(chunk, encoding)
    this.#since += 1
    if (this.#rule !== undefined && this.#rule.pauseFor === undefined) this.#refuse(this.#rule)
    else super.push(chunk, encoding)
    // Node pauses the connection until the next call of `_read`.
    return false
  }

  override _read(size: number): void {
    if (this.#isRefused || this.#isPaused) return
    const pauseMs = this.#since === 0 || this.#rule === undefined ? 0 : this.#rule.pauseFor?.(this.#since)
    this.#since = 0
    if (pauseMs === undefined) this.#refuse(this.#rule)
    // A body that has arrived takes nothing more.
    else if (pauseMs < 1 || this.complete) super._read(size)
    else this.#pause(pauseMs, size)
  }

  #pause(ms: number, size: number): void {
    this.#isPaused = true
    // A sender that waits is not silent.
    const { timeout = 0 } = this.socket
    this.socket.setTimeout(0)
    setTimeout(() => {
      this.#isPaused = false
      if (!this.complete) this.socket.setTimeout(timeout)
      this._read(size)
    }, ms)
  }

  #refuse(rule: ChunkRule | undefined): void {
    this.#isRefused = true
    rule?.refuse()
  }
}
