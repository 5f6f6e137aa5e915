import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { freed } from '../platform/freed.ts'
import { giveBackRecentMemory } from '../platform/memory.ts'
import type { Random } from '../platform/random.ts'
import { ReusedBufferStream, type TakeBytes } from '../platform/reused-buffer-stream.ts'
import { BlobRangeOutside, BlobTooLarge, fail } from './errors.ts'
import {
  type BlobKey,
  type BlobStore,
  type ByteRange,
  isBlobKey,
  newBlobKey,
  type OpenedBlob,
  type S3Settings,
} from './port.ts'
import { type ObjectName, uploadObject } from './s3-uploading.ts'
import { createUploadBudget } from './upload-memory.ts'

/** Memory for the parts of all uploads of a process. */
const uploadsBytesMax = 192 * 2 ** 20
const listMax = 500
const prefix = 'blobs/'

export interface S3Options {
  readonly random: Random
  readonly uploadsBytes?: number
  /** The time in milliseconds by which an upload is slow. */
  readonly now?: () => number
}

/**
 * The blob port on an S3-compatible storage, under `blobs/` in a dedicated bucket. Large content is uploaded in parts that become visible together.
 * Its age is by the storage's clock and counts from the start of the upload. A storage that cannot list unfinished uploads needs a lifecycle rule
 * that removes them (`AbortIncompleteMultipartUpload`).
 */
export function createS3Blobs(
  settings: S3Settings,
  { random, uploadsBytes = uploadsBytesMax, now }: S3Options,
): BlobStore & { close(): void } {
  const client = clientOf(settings)
  const memoryFor = createUploadBudget({ bytesMax: uploadsBytes, now })
  const at = (key: BlobKey) => ({ Bucket: settings.bucket, Key: nameOf(key) })
  return {
    async put(content, { bytesMax, key = newBlobKey(random), owner = '' }) {
      const received: Received = { size: 0, hash: createHash('sha256'), fault: undefined }
      const memory = memoryFor(owner)
      try {
        await uploadObject(client, at(key), { content: receive(content, received, bytesMax), memory })
      } catch (cause) {
        throw received.fault ?? memory.refusal() ?? fail('file-storage-unavailable', {}, cause)
      } finally {
        memory.release()
      }
      return { key, size: received.size, sha256: received.hash.digest('hex') }
    },
    open: (key, range) => openObject(client, at(key), range),
    async delete(key) {
      await onStorage(client.send(new DeleteObjectCommand(at(key))))
    },
    list: (before) => listOlder(client, settings.bucket, before),
    discardPartial: (before) => abortOlder(client, settings.bucket, before),
    close: () => client.destroy(),
  }
}

export function clientOf({ endpoint, region, accessKeyId, secretAccessKey }: S3Settings): S3Client {
  return new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    // Other S3-compatible storages need the bucket in the path and do not support checksums in trailers.
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 4,
  })
}

function nameOf(key: BlobKey): string {
  if (!isBlobKey(key)) throw new TypeError('not a blob key')
  return `${prefix}${key}`
}

interface Received {
  size: number
  readonly hash: ReturnType<typeof createHash>
  /** The error of the caller's stream, as opposed to the storage's; it is rethrown unchanged. */
  fault: unknown
}

async function* receive(content: AsyncIterable<Uint8Array>, received: Received, bytesMax: number) {
  try {
    for await (const chunk of content) {
      received.size += chunk.byteLength
      // Written this way so that a limit of NaN rejects everything.
      if (!(received.size <= bytesMax)) throw new BlobTooLarge(bytesMax)
      received.hash.update(chunk)
      yield chunk
    }
  } catch (fault) {
    received.fault = fault
    throw fault
  }
}

async function openObject(
  client: S3Client,
  name: ObjectName,
  range: ByteRange | undefined,
): Promise<OpenedBlob | undefined> {
  if (range !== undefined && (range.length === 0 || !isCount(range))) return openNothing(client, name, range)
  const part = range === undefined ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` }
  const found = await ifThere(client.send(new GetObjectCommand({ ...name, ...part })))
  if (found === 'outside') return openNothing(client, name, range)
  if (found === undefined) return undefined
  const { Body, ContentLength = 0, ContentRange } = found
  if (!(Body instanceof Readable)) throw fail('file-storage-unavailable', {}, new Error('an object has no stream'))
  if (range === undefined) return { size: ContentLength, content: new ObjectContent(Body) }
  const size = Number(/\/(\d+)$/.exec(ContentRange ?? '')?.[1])
  if (ContentLength === range.length) return { size, content: new ObjectContent(Body) }
  Body.destroy()
  if (ContentLength < range.length) throw new BlobRangeOutside(size)
  throw fail('file-storage-unavailable', {}, new Error('the storage sent more than the requested range'))
}

/** Handles ranges that cannot be requested from the storage: empty ones, and those outside the content. */
async function openNothing(
  client: S3Client,
  name: ObjectName,
  range: ByteRange | undefined,
): Promise<OpenedBlob | undefined> {
  const found = await ifThere(client.send(new HeadObjectCommand(name)))
  if (found === undefined || found === 'outside') return undefined
  const size = found.ContentLength ?? 0
  const isEmptyPart = range !== undefined && range.length === 0 && isCount(range) && range.offset <= size
  if (!isEmptyPart) throw new BlobRangeOutside(size)
  return { size, content: Readable.from([]) }
}

function isCount({ offset, length }: ByteRange): boolean {
  return [offset, length].every((count) => Number.isSafeInteger(count) && count >= 0)
}

async function* listOlder(client: S3Client, bucket: string, before: Date): AsyncIterable<readonly BlobKey[]> {
  let after: string | undefined
  do {
    const requested = {
      Bucket: bucket,
      Prefix: prefix,
      MaxKeys: listMax,
      ...(after === undefined ? {} : { ContinuationToken: after }),
    }
    const page = await onStorage(client.send(new ListObjectsV2Command(requested)))
    const keys = (page.Contents ?? []).flatMap(({ Key = '', LastModified }) => {
      const key = Key.slice(prefix.length)
      return isBlobKey(key) && LastModified !== undefined && LastModified < before ? [key] : []
    })
    if (keys.length > 0) yield keys
    after = page.NextContinuationToken
  } while (after !== undefined)
}

async function abortOlder(client: S3Client, bucket: string, before: Date): Promise<number> {
  let aborted = 0
  let after: { readonly KeyMarker: string; readonly UploadIdMarker: string } | undefined
  do {
    const requested = { Bucket: bucket, Prefix: prefix, MaxUploads: listMax, ...after }
    const page = await ifListed(client.send(new ListMultipartUploadsCommand(requested)))
    for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
      if (Initiated === undefined || Initiated >= before) continue
      await ifThere(client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId })))
      aborted += 1
    }
    const { NextKeyMarker, NextUploadIdMarker } = page ?? {}
    after =
      page?.IsTruncated === true
        ? { KeyMarker: NextKeyMarker ?? '', UploadIdMarker: NextUploadIdMarker ?? '' }
        : undefined
  } while (after !== undefined)
  return aborted
}

/** Undefined when the storage does not support the operation. */
async function ifListed<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (cause) {
    if (cause instanceof S3ServiceException && cause.name === 'NotImplemented') return undefined
    throw fail('file-storage-unavailable', {}, cause)
  }
}

async function ifThere<T>(work: Promise<T>): Promise<T | 'outside' | undefined> {
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

/** Turns storage errors into the problem `file-storage-unavailable`, which does not reveal the storage's location. */
async function onStorage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw fail('file-storage-unavailable', {}, cause)
  }
}

/** Memory is returned to the system after this many bytes, because the HTTP client copies network data. */
const unfreedBytesMax = 4 * 2 ** 20

/** The content of an S3 object. With `writeTo`, each chunk's memory is freed once it was consumed, without waiting for garbage collection. */
class ObjectContent extends ReusedBufferStream {
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
