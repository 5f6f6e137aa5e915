import { finished, Readable } from 'node:stream'
import { GetObjectCommand, HeadObjectCommand, type S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import type { FairSemaphore } from '../platform/fair-semaphore.ts'
import { releaseRecentMemory } from '../platform/memory.ts'
import { releaseChunks } from '../platform/release-chunks.ts'
import { ReusedBufferStream, type TakeBytes } from '../platform/reused-buffer-stream.ts'
import { BlobRangeOutside, fail } from './errors.ts'
import type { ByteRange, OpenedBlob } from './port.ts'
import type { ObjectName } from './s3-uploading.ts'

/** The client and the limits with which contents are read from the storage. */
export interface Reads {
  readonly client: S3Client
  /** Places for contents that have a connection to the storage, shared between their owners. */
  readonly slots: FairSemaphore
  /** A caller that takes no piece for this time loses the connection to the storage; it gets another one when it goes on. */
  readonly stalledMs: number
}

/** An object, and the owner of the slot that its content takes. */
export interface OwnedObject {
  readonly name: ObjectName
  readonly owner: string
}

/** Opens an object or a range of it; undefined when it does not exist. */
export async function openObject(
  reads: Reads,
  object: OwnedObject,
  range: ByteRange | undefined,
): Promise<OpenedBlob | undefined> {
  if (range !== undefined && (range.length === 0 || !isCount(range))) return openNothing(reads, object, range)
  const found = await getObject(reads, object, { range })
  if (found === 'outside') return openNothing(reads, object, range)
  if (found === undefined) return undefined
  const { body, length, size, etag } = found
  if (range !== undefined && length !== range.length) {
    body.destroy()
    if (length < range.length) throw new BlobRangeOutside(size)
    throw fail('file-storage-unavailable', {}, new Error('the storage sent more than the requested range'))
  }
  return { size, content: new ObjectContent(reads, object, { body, etag, range: range ?? { offset: 0, length } }) }
}

/** An open object. Its slot is free again when its body has ended or was destroyed. */
interface Got {
  readonly body: Readable
  /** Bytes of the body, and of the whole object. */
  readonly length: number
  readonly size: number
  readonly etag: string | undefined
}

interface Part {
  readonly range: ByteRange | undefined
  /** The object must have this ETag. */
  readonly etag?: string | undefined
  readonly until?: AbortSignal
}

/** With `until` it waits for a slot until that signal is aborted, and for the storage too. */
async function getObject(
  { client, slots }: Reads,
  { name, owner }: OwnedObject,
  { range, etag, until }: Part,
): Promise<Got | 'outside' | undefined> {
  const release = await slots.take(owner, until)
  let got: Got | undefined
  try {
    const part = {
      ...(range !== undefined && { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` }),
      ...(etag !== undefined && { IfMatch: etag }),
    }
    const options = until === undefined ? {} : { abortSignal: until }
    const found = await undefinedIfNoObject(client.send(new GetObjectCommand({ ...name, ...part }), options))
    if (found === 'outside' || found === undefined) return found
    const { Body: body, ContentLength: length = 0, ContentRange, ETag: sentEtag } = found
    if (!(body instanceof Readable)) throw fail('file-storage-unavailable', {}, new Error('an object has no stream'))
    const size = range === undefined ? length : Number(/\/(\d+)$/.exec(ContentRange ?? '')?.[1])
    // A weak ETag never matches (RFC 9110, section 13.1.1).
    got = { body, length, size, etag: sentEtag?.startsWith('W/') === true ? undefined : sentEtag }
    // It also prevents a connection error before the first read from ending the process: the reader gets the error.
    finished(body, release)
    return got
  } finally {
    if (got === undefined) release()
  }
}

/** Handles ranges that cannot be requested from the storage: empty ones, and those outside the content. */
async function openNothing(
  { client, slots }: Reads,
  { name, owner }: OwnedObject,
  range: ByteRange | undefined,
): Promise<OpenedBlob | undefined> {
  const release = await slots.take(owner)
  const found = await undefinedIfNoObject(client.send(new HeadObjectCommand(name))).finally(release)
  if (found === undefined || found === 'outside') return undefined
  const size = found.ContentLength ?? 0
  const isEmptyPart = range !== undefined && range.length === 0 && isCount(range) && range.offset <= size
  if (!isEmptyPart) throw new BlobRangeOutside(size)
  return { size, content: Readable.from([]) }
}

function isCount({ offset, length }: ByteRange): boolean {
  return [offset, length].every((count) => Number.isSafeInteger(count) && count >= 0)
}

/** Undefined for an object that does not exist. */
export async function undefinedIfNoObject<T>(work: Promise<T>): Promise<T | 'outside' | undefined> {
  try {
    return await work
  } catch (cause) {
    const status = cause instanceof S3ServiceException ? cause.$metadata.httpStatusCode : undefined
    const isBucketGone = cause instanceof S3ServiceException && cause.name === 'NoSuchBucket'
    if (status === 404 && !isBucketGone) return undefined
    if (status === 416) return 'outside'
    throw fail('file-storage-unavailable', {}, cause)
  }
}

/** Memory is returned to the system after this many bytes, because the HTTP client copies network data. */
const unfreedBytesMax = 4 * 2 ** 20

/**
 * The content of an S3 object. With `writeTo`, each chunk's memory is freed once it was consumed, without waiting for garbage collection, and
 * a reader that stalls has no connection to the storage: however many readers are slow, others get one.
 */
class ObjectContent extends ReusedBufferStream {
  readonly #reads: Reads
  readonly #object: OwnedObject
  readonly #range: ByteRange
  readonly #etag: string | undefined
  #body: Readable
  #pieces: AsyncIterator<Uint8Array> | undefined

  constructor(
    reads: Reads,
    object: OwnedObject,
    { body, etag, range }: Pick<Got, 'body' | 'etag'> & { readonly range: ByteRange },
  ) {
    super()
    this.#reads = reads
    this.#object = object
    this.#range = range
    this.#etag = etag
    this.#body = body
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

  override async writeTo(take: TakeBytes, gone: AbortSignal = new AbortController().signal): Promise<void> {
    const leave = (): void => void this.destroy()
    gone.addEventListener('abort', leave, { once: true })
    try {
      const { length } = this.#range
      let sent = await this.#writeUntilStalled(take)
      while (sent < length) {
        this.#body = await this.#reopen(sent, gone)
        sent += await this.#writeUntilStalled(take)
      }
    } catch (fault) {
      gone.throwIfAborted()
      throw fault
    } finally {
      gone.removeEventListener('abort', leave)
      this.destroy()
    }
  }

  /** Writes the body up to its end, or up to a piece for which the reader stalls. Returns how many bytes it wrote. */
  async #writeUntilStalled(take: TakeBytes): Promise<number> {
    const body = this.#body
    let [sent, unfreed, isStalled] = [0, 0, false]
    const stall = (): void => {
      isStalled = true
      body.destroy()
    }
    for await (const piece of releaseChunks(body)) {
      const { byteLength } = piece
      const timer = setTimeout(stall, this.#reads.stalledMs)
      await take(piece).finally(() => clearTimeout(timer))
      sent += byteLength
      if (isStalled) break
      unfreed += byteLength
      if (unfreed < unfreedBytesMax) continue
      releaseRecentMemory()
      unfreed = 0
    }
    return sent
  }

  /**
   * Opens the rest of the same content again. The head of the response was sent, so it waits for a slot as long as the reader does, which occupies no
   * connection meanwhile.
   */
  async #reopen(sent: number, gone: AbortSignal): Promise<Readable> {
    const rest = { offset: this.#range.offset + sent, length: this.#range.length - sent }
    const found = await getObject(this.#reads, this.#object, { range: rest, etag: this.#etag, until: gone })
    const isWhole = typeof found === 'object' && found.length === rest.length
    if (isWhole && !gone.aborted) return found.body
    if (typeof found === 'object') found.body.destroy()
    throw fail('file-storage-unavailable', {}, new Error('the rest of an object is not there'))
  }
}
