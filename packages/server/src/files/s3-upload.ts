import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'

/** Size of an upload part: the minimum of S3. With at most 10,000 parts, content may have 48 GiB. */
const partBytes = 5 * 2 ** 20

export interface ObjectName {
  readonly Bucket: string
  readonly Key: string
}

/**
 * Stores content of unknown length: in one request if it fits, otherwise in parts, one being sent while the next is received. Uses two reused part
 * buffers. On any failure the upload is aborted.
 */
export async function uploadObject(
  client: S3Client,
  name: ObjectName,
  content: AsyncIterable<Uint8Array>,
): Promise<void> {
  const parts = partsOf(content)
  try {
    const first = await parts.next()
    const second = await parts.next()
    if (first.done !== true && second.done !== true)
      await uploadParts(client, name, joined([first.value, second.value], parts))
    else
      await client.send(new PutObjectCommand({ ...name, Body: first.done === true ? new Uint8Array() : first.value }))
  } finally {
    await parts.return(undefined)
  }
}

async function uploadParts(client: S3Client, name: ObjectName, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(name))
  const sent: { readonly PartNumber: number; readonly ETag: string | undefined }[] = []
  const send = async (Body: Uint8Array, PartNumber: number): Promise<void> => {
    const { ETag } = await client.send(new UploadPartCommand({ ...name, UploadId, PartNumber, Body }))
    sent.push({ PartNumber, ETag })
  }
  let sending = Promise.resolve()
  try {
    let number = 0
    for await (const part of parts) {
      await sending
      number += 1
      sending = send(part, number)
      // An error is reported when the next part waits for this one; this prevents an unhandled rejection until then.
      sending.catch(() => undefined)
    }
    await sending
    await client.send(new CompleteMultipartUploadCommand({ ...name, UploadId, MultipartUpload: { Parts: sent } }))
  } catch (error) {
    await sending.catch(() => undefined)
    // `discardPartial` later aborts an upload that cannot be aborted now; the first error is the one to report.
    await client.send(new AbortMultipartUploadCommand({ ...name, UploadId })).catch(() => undefined)
    throw error
  }
}

async function* joined(begun: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* begun.filter(({ length }) => length > 0)
  yield* rest
}

/** Splits content into parts of equal size and a remainder. A part is valid until the next but one is requested, because two buffers alternate. */
async function* partsOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let [filling, other] = [Buffer.allocUnsafeSlow(partBytes), Buffer.allocUnsafeSlow(partBytes)]
  let filled = 0
  for await (const chunk of content) {
    for (let taken = 0; taken < chunk.byteLength; ) {
      const some = chunk.subarray(taken, taken + partBytes - filled)
      filling.set(some, filled)
      filled += some.byteLength
      taken += some.byteLength
      if (filled < partBytes) continue
      yield filling
      ;[filling, other] = [other, filling]
      filled = 0
    }
  }
  if (filled > 0) yield filling.subarray(0, filled)
}
