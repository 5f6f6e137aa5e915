import type { SealedItem } from '@purser/protocol'
import { sha256Hex } from './ed25519.ts'
import { refused, type Verdict } from './verdict.ts'

/** The size in bytes and the SHA-256 in lower-case hex of content that the caller has hashed: for files too large for memory. */
export type ContentDigest = { readonly size: number; readonly sha256: string }

/** The content of an item: a file's bytes, or those that `documentContent` makes of a document's data. */
export type Content = Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | ContentDigest

/**
 * How much content is gathered to be hashed: WebCrypto hashes what is whole in memory. For more, hash it while it is read (in Node
 * with `createHash` of `node:crypto`) and give a `ContentDigest`.
 */
export const contentBytesMax = 268_435_456

/**
 * What is wrong with content that should be this item's, or `undefined`. No more of a stream is read than the item's size and one
 * chunk, so that an endless one ends; the rest of it is cancelled. An error of the stream, and a `TypeError` for one of text, reach the caller.
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
    if (!(chunk instanceof Uint8Array)) throw new TypeError('content comes as bytes, not as text')
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

/** Not every browser lets a stream be iterated over. */
async function* chunksOfStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    reader.cancel().catch(() => {})
  }
}
