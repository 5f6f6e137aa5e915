import type { SealedItem } from '@purser/protocol'
import { sha256Hex } from './ed25519.ts'
import { refused, type Verdict } from './verdict.ts'

/**
 * Size in bytes and SHA-256 in lower-case hex of content that the caller has hashed. For files too large for memory.
 */
export type ContentDigest = { readonly size: number; readonly sha256: string }

/** The content of an item: the bytes of a file, or the result of `documentContent` for a document's data. */
export type Content = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | ContentDigest

/**
 * The maximum content size in bytes, because WebCrypto hashes only data that is completely in memory. For larger
 * content, hash it as a stream (in Node with `createHash` of `node:crypto`) and pass a `ContentDigest`.
 */
export const contentBytesMax = 268_435_456

/**
 * Returns why content is not this item's, or `undefined` if it is. Reads at most the item's size and one chunk of a
 * stream and cancels the rest, so endless streams terminate. Rethrows errors of the stream, and throws a `TypeError`
 * for a stream of text.
 */
export async function whyNotContent(item: SealedItem, content: Content): Promise<Verdict | undefined> {
  const isInMemory = 'sha256' in content || content instanceof Uint8Array
  if (!isInMemory && item.size > contentBytesMax) return refused('content-too-large')
  const digest = 'sha256' in content ? content : await digestOf(content, item.size)
  if (digest === 'longer')
    return refused('content-differs', `The content is longer than the ${item.size} bytes sealed.`)
  const { size, sha256 } = digest
  if (size !== item.size) return refused('content-differs', `The content has ${size} bytes; ${item.size} were sealed.`)
  return sha256 === item.sha256 ? undefined : refused('content-differs')
}

async function digestOf(content: Exclude<Content, ContentDigest>, sizeMax: number): Promise<ContentDigest | 'longer'> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  for await (const chunk of chunksOf(content)) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('content must be bytes, not text')
    size += chunk.length
    if (size > sizeMax) return 'longer'
    chunks.push(new Uint8Array(chunk))
  }
  const whole = new Uint8Array(await new Blob(chunks).arrayBuffer())
  return { size, sha256: await sha256Hex(whole) }
}

function chunksOf(content: Exclude<Content, ContentDigest>): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (content instanceof Uint8Array) return [content]
  if (content instanceof Blob) return chunksOfStream(content.stream())
  return content instanceof ReadableStream ? chunksOfStream(content) : content
}

/** Some browsers cannot iterate over a stream. */
async function* chunksOfStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    reader.cancel().catch(() => {})
  }
}
