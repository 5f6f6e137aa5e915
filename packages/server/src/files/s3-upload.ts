import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'

/** Bytes of one part of an upload: the least that S3 takes. It takes 10,000 parts, so a content may have 48 GiB. */
const partBytes = 5 * 2 ** 20

export interface ObjectName {
  readonly Bucket: string
  readonly Key: string
}

/**
 * Stores a content of unknown length: in one request where it fits in one, otherwise in parts of which one is sent while the next
 * one comes in. Two parts are in memory, the same two until the end. Whatever fails, the parts that were sent are given up.
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
      // Told when the next part waits for this one; until then nobody listens.
      sending.catch(() => undefined)
    }
    await sending
    await client.send(new CompleteMultipartUploadCommand({ ...name, UploadId, MultipartUpload: { Parts: sent } }))
  } catch (error) {
    await sending.catch(() => undefined)
    // What cannot be given up now is found by `discardPartial`; the first fault is the one to tell.
    await client.send(new AbortMultipartUploadCommand({ ...name, UploadId })).catch(() => undefined)
    throw error
  }
}

async function* joined(begun: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* begun.filter(({ length }) => length > 0)
  yield* rest
}

/** The content in parts of one size and a rest. A part is good until the next but one is asked for: their memory takes turns. */
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
