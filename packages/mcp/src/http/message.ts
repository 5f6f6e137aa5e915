import { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { collectBytes, countChunks } from '@purser/protocol'

/** The largest message, in bytes: a vault takes a document of that size. */
export const messageBytesMax = 1_048_576

/** The size of a message, counted on its bytes before it is parsed. */
export interface MessageShape {
  /** The JSON-RPC messages in it: more than one in a batch. */
  readonly messages: number
  /** Values in arrays and objects, and about as many names as there are members. */
  readonly nodes: number
}

/** Returns the bytes that the body of a request may take: its announced length, or the most if it announces none. */
export function bodyBytesOf({ headers }: Pick<IncomingMessage, 'headers'>): number {
  if (headers['transfer-encoding'] !== undefined) return messageBytesMax
  return Number(headers['content-length'] ?? 0)
}

/** Most chunks of a body with fewer than 64 bytes on average: the parser takes three microseconds for each. */
const tinyChunksMax = 1_000

/**
 * A request that receives nothing more of a body with too many tiny chunks. The parser reports each chunk as a buffer of its own, also before anything
 * reads the body, and a reader may receive many of them as one, so the count is here.
 */
export class CountedRequest extends IncomingMessage {
  readonly #chunks = countChunks(tinyChunksMax)
  readonly #exceeded = Promise.withResolvers<'too-many-chunks'>()
  #isExceeded = false

  /** Resolves when the body has too many tiny chunks. */
  get exceeded(): Promise<'too-many-chunks'> {
    return this.#exceeded.promise
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!(chunk instanceof Uint8Array)) return super.push(chunk, encoding)
    this.#isExceeded ||= !this.#chunks.take(chunk.length)
    if (!this.#isExceeded) return super.push(chunk, encoding)
    this.#exceeded.resolve('too-many-chunks')
    // Node pauses the connection, and nothing reads on.
    return false
  }

  override _read(size: number): void {
    if (!this.#isExceeded) super._read(size)
  }
}

/** Reads the body of a request, or returns why it is refused. */
export function readBody(request: Readable): Promise<Buffer | 'too-large' | 'too-many-chunks'> {
  const collected = collectBytes({ bytesMax: messageBytesMax, tinyChunksMax: Number.POSITIVE_INFINITY })
  return new Promise((resolve, reject) => {
    if (request instanceof CountedRequest) void request.exceeded.then(resolve)
    request.on('error', reject)
    request.on('end', () => {
      const { buffer, byteOffset, length } = collected.bytes()
      resolve(Buffer.from(buffer, byteOffset, length))
    })
    request.on('data', (chunk: Buffer) => {
      if (collected.take(chunk) === 'taken') return
      request.pause()
      resolve('too-large')
    })
  })
}

const [openBrace, openBracket, closeBrace, closeBracket] = [0x7b, 0x5b, 0x7d, 0x5d]
const [comma, colon, quote, backslash] = [0x2c, 0x3a, 0x22, 0x5c]

/**
 * Returns the shape of a JSON text in one pass. A text that is no JSON has one that is never below its cost. The first brace or bracket decides whether
 * it is a batch, because a byte order mark may come before it, which the SDK leaves out.
 */
export function shapeOf(body: Uint8Array): MessageShape {
  let depth = 0
  let nodes = 0
  let firstLevel = 0
  let inString = false
  let first: number | undefined
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at]
    if (inString) {
      if (byte === backslash) at += 1
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === comma || byte === colon) {
      nodes += 1
      if (depth === 1 && byte === comma) firstLevel += 1
    } else if (byte === openBrace || byte === openBracket) {
      first ??= byte
      nodes += 1
      depth += 1
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1
  }
  return { messages: first === openBracket ? firstLevel + 1 : 1, nodes }
}
