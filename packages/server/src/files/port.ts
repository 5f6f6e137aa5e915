import type { Readable } from 'node:stream'
import type { Random } from '../platform/random.ts'

/**
 * The name of one stored content: `blob_` and 32 hex digits that the store drew by chance. It never comes from a caller's text,
 * and a caller never sees it.
 */
export type BlobKey = `blob_${string}`

const keyPattern = /^blob_[0-9a-f]{32}$/

/** Whether the text is a key that a store can have given; what is read from a row passes through here. */
export function isBlobKey(text: string): text is BlobKey {
  return keyPattern.test(text)
}

/** A new key. Whoever must know the key before the content is there, to find what a crash left, draws it and gives it to `put`. */
export function newBlobKey(random: Random): BlobKey {
  return `blob_${Buffer.from(random.bytes(16)).toString('hex')}`
}

/** What was stored: `size` in bytes and the SHA-256 of the content in lower-case hex, both taken as it came in. */
export interface StoredBlob {
  readonly key: BlobKey
  readonly size: number
  readonly sha256: string
}

/** A part of a content, in bytes from its beginning. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

/** A content to be read: the size of all of it, and the bytes that were asked for. Read the stream to its end or destroy it. */
export interface OpenedBlob {
  readonly size: number
  readonly content: Readable
}

/**
 * Where the contents of files live. No content is ever whole in memory, and one is there whole or not at all: `put` answers once
 * it would survive a loss of power, and whatever ends before that leaves nothing that can be opened or listed. A store knows
 * nothing of rows: a content that no row names, because a transaction failed after `put`, is found by `sweepBlobs`. What the
 * storage itself fails in is the problem `file-storage-unavailable`.
 */
export interface BlobStore {
  /**
   * Stores a stream under a new key, drawn here or by `newBlobKey`. Throws `BlobTooLarge` as soon as more than `bytesMax` have come, and passes on what the
   * stream itself throws; either way the stream is ended and what had come is removed.
   */
  put(
    content: AsyncIterable<Uint8Array>,
    as: { readonly bytesMax: number; readonly key?: BlobKey },
  ): Promise<StoredBlob>
  /** Opens a content, or a part of it; `undefined` where there is none. Throws `BlobRangeOutside` for a part that is not in it. */
  open(key: BlobKey, range?: ByteRange): Promise<OpenedBlob | undefined>
  /** Removes a content; one that is not there is removed already. Whoever has it open reads on to its end. */
  delete(key: BlobKey): Promise<void>
  /** The keys of what was stored before this instant, in lists of at most 500, in no particular order. */
  list(before: Date): AsyncIterable<readonly BlobKey[]>
  /** Removes the beginnings of uploads that started before this instant and never ended; answers how many there were. */
  discardPartial(before: Date): Promise<number>
}
