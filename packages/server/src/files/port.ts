import type { Readable } from 'node:stream'
import type { Random } from '../platform/random.ts'

/** Location of an S3-compatible storage, and credentials that can read, write, list and delete only in this bucket. */
export interface S3Settings {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** The key of stored content: `blob_` and 32 random hex digits. It is never taken from a caller's input and never shown to a caller. */
export type BlobKey = `blob_${string}`

const keyPattern = /^blob_[0-9a-f]{32}$/

/** Whether the text is a valid blob key. Used to check values read from rows. */
export function isBlobKey(text: string): text is BlobKey {
  return keyPattern.test(text)
}

/** Generates a new key. Pass it to `put` when the key must be stored before the content, to find leftovers of a crash. */
export function newBlobKey(random: Random): BlobKey {
  return `blob_${Buffer.from(random.bytes(16)).toString('hex')}`
}

/** Stored content: `size` in bytes and its SHA-256 in lower-case hex, both computed during the upload. */
export interface StoredBlob {
  readonly key: BlobKey
  readonly size: number
  readonly sha256: string
}

/** A range of content, in bytes from its start. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

/** Opened content: its total size and a stream of the requested bytes. Read the stream to its end or destroy it. */
export interface OpenedBlob {
  readonly size: number
  readonly content: Readable
}

/**
 * Storage for file content. Content is streamed and never completely in memory. `put` is atomic: it resolves once the content is durable, and a
 * failed upload leaves nothing that can be opened or listed. The store does not know database rows: a caller stores the key before it puts the content,
 * and so can delete what a failed transaction leaves. Failures of the storage are the problem `file-storage-unavailable`.
 */
export interface BlobStore {
  /**
   * Stores a stream under a new key, generated here or by `newBlobKey`. Throws `BlobTooLarge` as soon as `bytesMax` is exceeded, and rethrows
   * errors of the stream. Both end the stream and remove the partial content. Where a storage needs large buffers, the uploads of an `owner` have a
   * share of the memory for them, and one above it is refused as `rate-limit-exceeded`. While the memory is short, a slow one ends as `request-timeout`.
   */
  put(
    content: AsyncIterable<Uint8Array>,
    as: { readonly bytesMax: number; readonly key?: BlobKey; readonly owner?: string },
  ): Promise<StoredBlob>
  /**
   * Opens content or a range of it; `undefined` when it does not exist. Throws `BlobRangeOutside` for a range outside the content. Where a storage needs
   * a connection for each content, those that an `owner` reads have a share of them, and one above it waits: after ten seconds it is refused as
   * `service-unavailable`.
   */
  open(key: BlobKey, range?: ByteRange, owner?: string): Promise<OpenedBlob | undefined>
  /** Removes content. Does nothing for an unknown key. Open readers that do not stall can read to the end. */
  delete(key: BlobKey): Promise<void>
  /** The keys of content stored before this instant, in lists of at most 500, in no particular order. */
  list(before: Date): AsyncIterable<readonly BlobKey[]>
  /** Removes unfinished uploads that started before this instant, until `stopping` is aborted. Returns how many were removed. */
  discardPartial(before: Date, stopping?: AbortSignal): Promise<number>
}
