import { createHash } from 'node:crypto'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { createFairSemaphore } from '../platform/fair-semaphore.ts'
import { memoryBudgets } from '../platform/memory-budgets.ts'
import type { Random } from '../platform/random.ts'
import { createSemaphores } from '../platform/semaphores.ts'
import { BlobTooLarge, fail } from './errors.ts'
import { type BlobKey, type BlobStore, isBlobKey, newBlobKey, type S3Settings } from './port.ts'
import { openObject, type Reads, undefinedIfNoObject } from './s3-reading.ts'
import { uploadObject } from './s3-uploading.ts'
import { createUploadBudget } from './upload-memory.ts'

/** Memory for the parts of all uploads of a process. */
const uploadsBytesMax = memoryBudgets.uploads
/** Most contents of a process that are read at once, shared between their owners, and how long others wait for a place. */
const readsMax = 512
const patience = { waitMsMax: 10_000, waitingMax: 1_000 }
/** A reader that takes less than one piece of the connection, some 64 KiB, in this time has no connection to the storage. */
const stalledMs = 10_000
/** Connections for all other requests. Each is used for as long as the storage takes. */
const connectionsMax = 50
/** Wait of a request for one of them: storage that is slow but sends and takes bytes has served those before it by then. */
const connectionPatience = { waitMsMax: 600_000, waitingMax: 1_000 }
/** A storage that sends and takes no byte in this time does not respond: the request is repeated, and then fails. A slow one may take longer. */
const silentMs = 30_000
const listMax = 500
const prefix = 'blobs/'

export interface S3Options {
  readonly random: Random
  readonly uploadsBytes?: number
  /** The time in milliseconds by which an upload is slow. */
  readonly now?: () => number
  readonly readsMax?: number
  readonly stalledMs?: number
  readonly silentMs?: number
  /** Most milliseconds that a download waits for a place before it begins. */
  readonly waitMsMax?: number
}

/**
 * The blob port on an S3-compatible storage, under `blobs/` in a dedicated bucket. Large content is uploaded in parts that become visible together.
 * Its age is by the storage's clock and counts from the start of the upload. A storage that cannot list unfinished uploads needs a lifecycle rule
 * that removes them (`AbortIncompleteMultipartUpload`).
 */
export function createS3Blobs(
  settings: S3Settings,
  { random, uploadsBytes = uploadsBytesMax, now, ...own }: S3Options,
): BlobStore & { close(): void } {
  const client = inTurn(clientOf(settings, silenceOf(own)))
  const reads = readsOf(settings, own)
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
    open: async (key, range, owner = '') => openObject(reads, { name: at(key), owner }, range),
    async delete(key) {
      await onStorage(client.send(new DeleteObjectCommand(at(key))))
    },
    list: (before) => listOlder(client, settings.bucket, before),
    discardPartial: (before, stopping) => abortOlder(client, settings.bucket, { before, stopping }),
    close() {
      client.destroy()
      reads.client.destroy()
    },
  }
}

/** Reads have connections of their own: they last for as long as their callers take. */
function readsOf(settings: S3Settings, own: Omit<S3Options, 'random'>): Reads {
  const max = own.readsMax ?? readsMax
  return {
    client: clientOf(settings, silenceOf(own), max),
    slots: createFairSemaphore(max, { ...patience, waitMsMax: own.waitMsMax ?? patience.waitMsMax }),
    stalledMs: own.stalledMs ?? stalledMs,
  }
}

function silenceOf({ silentMs: ms = silentMs }: Pick<S3Options, 'silentMs'>): TimeLimits {
  return { connectionTimeout: ms, socketTimeout: ms }
}

/** A client whose requests wait for a connection before they begin, because the library counts the wait as a part of connecting. */
function inTurn(client: S3Client): S3Client {
  const withSemaphores = createSemaphores(connectionsMax, connectionPatience)
  const connections = { name: 'connections', widthMax: connectionsMax }
  client.middlewareStack.add((next) => (args) => withSemaphores([connections], () => next(args)), {
    step: 'initialize',
  })
  return client
}

/**
 * Time limits of one attempt, in milliseconds: until it has a connection, with the wait while others use all connections of the client; of silence
 * on the connection; and until the response begins.
 */
export interface TimeLimits {
  readonly connectionTimeout: number
  readonly socketTimeout: number
  readonly requestTimeout?: number
}

/** A client with at most this many connections. The library itself has no time limits. */
export function clientOf(settings: S3Settings, limits: TimeLimits, maxSockets = connectionsMax): S3Client {
  const { endpoint, region, accessKeyId, secretAccessKey } = settings
  const agent = { keepAlive: true, maxSockets }
  return new S3Client({
    requestHandler: { httpAgent: agent, httpsAgent: agent, throwOnRequestTimeout: true, ...limits },
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

async function abortOlder(
  client: S3Client,
  bucket: string,
  { before, stopping }: { readonly before: Date; readonly stopping: AbortSignal | undefined },
): Promise<number> {
  let aborted = 0
  let after: { readonly KeyMarker: string; readonly UploadIdMarker: string } | undefined
  do {
    const requested = { Bucket: bucket, Prefix: prefix, MaxUploads: listMax, ...after }
    const page = await ifListed(client.send(new ListMultipartUploadsCommand(requested)))
    for (const { Key, UploadId, Initiated } of page?.Uploads ?? []) {
      if (stopping?.aborted === true) return aborted
      if (Initiated === undefined || Initiated >= before) continue
      await undefinedIfNoObject(client.send(new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId })))
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

/** Turns storage errors into the problem `file-storage-unavailable`, which does not reveal the storage's location. */
async function onStorage<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw fail('file-storage-unavailable', {}, cause)
  }
}
