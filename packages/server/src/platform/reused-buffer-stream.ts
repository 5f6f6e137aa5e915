import { Readable } from 'node:stream'

/** Takes bytes, and resolves when their buffer may be reused; rejects when nobody reads them any more. */
export type TakeBytes = (bytes: Uint8Array) => Promise<void>

/**
 * A stream that can also write through one reused buffer, so that a content of any size leaves no garbage. A caller uses either this or the
 * stream interface, not both.
 */
export abstract class ReusedBufferStream extends Readable {
  /**
   * Passes on all bytes of the stream, in order, and destroys the stream in any case. Rejects as `take` does. `gone` is aborted when nobody reads
   * the bytes any more, also between two calls of `take`; a stream that waits for something then may reject with its reason at once.
   */
  abstract writeTo(take: TakeBytes, gone?: AbortSignal): Promise<void>
}
