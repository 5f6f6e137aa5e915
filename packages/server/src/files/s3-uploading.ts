import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { UploadMemory } from './upload-memory.ts'

/** The bucket and the key of an object. */
export interface ObjectName {
  readonly Bucket: string
  readonly Key: string
}

/** Size of an upload part: the minimum of S3. With at most 10,000 parts, content may have 48 GiB. */
const partBytes = 5 * 2 ** 20
/** Size of an upload's first buffer, which is not counted: a connection itself takes as much. */
const firstBytes = 64 * 1024
/** A full buffer that is smaller than a part grows by this factor. */
const growth = 4

interface Upload {
  readonly content: AsyncIterable<Uint8Array>
  readonly memory: UploadMemory
}

/**
 * Stores content of unknown length: in one request if it fits into a part, otherwise in parts. While there is memory for a second buffer, one part is
 * sent while the next is received. On any failure the upload is aborted.
 */
export async function uploadObject(client: S3Client, name: ObjectName, upload: Upload): Promise<void> {
  const progress: Progress = { sending: Promise.resolve() }
  const parts = partsOf(upload, progress)
  try {
    const { value: first } = await parts.next()
    if (first === undefined) throw new Error('content has no part')
    if (first.isLast) await client.send(new PutObjectCommand({ ...name, Body: first.bytes }))
    else await uploadParts(client, name, { first, rest: parts, progress })
  } finally {
    await parts.return(undefined)
  }
}

/** A part; its bytes are valid until it was sent. */
interface Part {
  readonly bytes: Uint8Array
  readonly isLast: boolean
}

interface Progress {
  /** Settles when the newest part was sent. */
  sending: Promise<unknown>
}

async function uploadParts(
  client: S3Client,
  name: ObjectName,
  { first, rest, progress }: { readonly first: Part; readonly rest: AsyncIterable<Part>; readonly progress: Progress },
): Promise<void> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(name))
  const sent: { readonly PartNumber: number; readonly ETag: string | undefined }[] = []
  const send = async (Body: Uint8Array, PartNumber: number): Promise<void> => {
    const { ETag } = await client.send(new UploadPartCommand({ ...name, UploadId, PartNumber, Body }))
    sent.push({ PartNumber, ETag })
  }
  try {
    let number = 0
    const next = async ({ bytes }: Part): Promise<void> => {
      await progress.sending
      number += 1
      progress.sending = send(bytes, number)
      // An error is reported when the next part waits for this one; this prevents an unhandled rejection until then.
      progress.sending.catch(() => undefined)
    }
    await next(first)
    for await (const part of rest) await next(part)
    await progress.sending
    await client.send(new CompleteMultipartUploadCommand({ ...name, UploadId, MultipartUpload: { Parts: sent } }))
  } catch (error) {
    // `discardPartial` later aborts an upload that cannot be aborted now; the first error is the one to report.
    await progress.sending.catch(() => undefined)
    await client.send(new AbortMultipartUploadCommand({ ...name, UploadId })).catch(() => undefined)
    throw error
  }
}

/**
 * Splits content into parts of `partBytes` and a last part, which may be smaller or empty. A full part is yielded once more content has arrived. With
 * two buffers, one is filled while the other is sent; with one, the next part waits until it was sent.
 */
async function* partsOf({ content, memory }: Upload, progress: Progress): AsyncGenerator<Part> {
  let filling = Buffer.allocUnsafeSlow(firstBytes)
  let other: typeof filling | undefined
  let filled = 0
  memory.fills()
  for await (const chunk of memory.endable(content)) {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (filled === partBytes) {
        memory.waits()
        yield { bytes: filling, isLast: false }
        if (other === undefined && memory.takeSecond(partBytes)) other = Buffer.allocUnsafeSlow(partBytes)
        if (other === undefined) await progress.sending
        else [filling, other] = [other, filling]
        filled = 0
        memory.fills()
      } else if (filled === filling.byteLength) filling = grown(filling, memory)
      const some = chunk.subarray(taken, taken + filling.byteLength - filled)
      filling.set(some, filled)
      filled += some.byteLength
      taken += some.byteLength
    }
  }
  memory.waits()
  yield { bytes: filling.subarray(0, filled), isLast: true }
}

/** Returns a larger buffer with the same content. */
function grown(full: Uint8Array, memory: UploadMemory): Buffer<ArrayBuffer> {
  const bytes = Math.min(full.byteLength * growth, partBytes)
  memory.take(bytes - full.byteLength)
  memory.fills()
  const larger = Buffer.allocUnsafeSlow(bytes)
  larger.set(full)
  return larger
}
