import { Readable } from 'node:stream'

/** Takes bytes, and resolves when their memory may be written anew; rejects when nobody takes them any more. */
export type TakeBytes = (bytes: Uint8Array) => Promise<void>

/**
 * A stream that can also be poured: through a memory that is used again and again, so that a content of any size leaves nothing
 * for the collector. Whoever pours it must not read it as a stream too.
 */
export abstract class Pour extends Readable {
  /** Gives all that the stream would have given, in order, and destroys the stream, however it ends. Rejects as `take` does. */
  abstract pour(take: TakeBytes): Promise<void>
}
