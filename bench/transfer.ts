import { createHash, randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { readResponse } from './load.ts'

/**
 * File content of any size: a repeated block whose length is not a multiple of any chunk size, so that a misplaced
 * chunk is detected.
 */
export interface Content {
  readonly bytes: number
  readonly sha256: string
  /** The content in pieces. */
  pieces(): Iterable<Buffer>
  /** Whether these bytes are the content at this offset. */
  isAt(place: number, found: Buffer): boolean
}

const blockBytes = 1_000_003

/** Makes a content of this size, the same each time it is read. */
export function createContent(bytes: number): Content {
  const block = randomBytes(blockBytes)
  function* pieces(): Iterable<Buffer> {
    for (let left = bytes; left > 0; left -= blockBytes) yield left < blockBytes ? block.subarray(0, left) : block
  }
  const hash = createHash('sha256')
  for (const piece of pieces()) hash.update(piece)
  return {
    bytes,
    sha256: hash.digest('hex'),
    pieces,
    isAt(place, found) {
      if (place + found.length > bytes) return false
      for (let at = 0; at < found.length; ) {
        const from = (place + at) % blockBytes
        const length = Math.min(found.length - at, blockBytes - from)
        if (found.compare(block, from, from + length, at, at + length) !== 0) return false
        at += length
      }
      return true
    },
  }
}

/** A request with a large body, or a large response, on a connection of its own. */
export interface Target {
  readonly port: number
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

const msMax = 120_000
/**
 * Writes each chunk as soon as the previous one is taken, and reads into one buffer, because the generator shares the
 * machine with what it measures.
 */
const readBytes = 1_048_576

/**
 * Uploads the content as a multipart form. Returns the status (0 without a response), the body and the time until the
 * response was complete.
 */
export async function upload(
  target: Target,
  content: Content,
  form: { readonly before: string; readonly after: string } = { before: '', after: '' },
): Promise<{ readonly status: number; readonly body: string; readonly ms: number }> {
  const began = performance.now()
  const chunks: Buffer[] = []
  const socket = open(target.port, (chunk) => chunks.push(Buffer.from(chunk)))
  const closed = until(socket, 'close')
  const length = Buffer.byteLength(form.before) + content.bytes + Buffer.byteLength(form.after)
  socket.write(headOf(target, { 'content-length': String(length) }) + form.before)
  for (const piece of content.pieces()) {
    if (!socket.write(piece)) await Promise.race([until(socket, 'drain'), closed])
    if (socket.destroyed) break
  }
  socket.write(form.after)
  await closed
  const ms = performance.now() - began
  const { status, body } = readResponse(Buffer.concat(chunks)) ?? { status: 0, body: '' }
  return { status, body, ms }
}

/** Downloads and compares each byte. `isRight` if the response was a 200 with the complete content. */
export async function download(
  target: Target,
  content: Content,
): Promise<{ readonly isRight: boolean; readonly detail: string; readonly ms: number }> {
  const began = performance.now()
  const head = createHead()
  let place = 0
  let isSame = true
  const socket = open(target.port, (chunk) => {
    const body = head.take(chunk)
    isSame &&= content.isAt(place, body)
    place += body.length
  })
  const closed = until(socket, 'close')
  socket.write(headOf(target, {}))
  await closed
  const ms = performance.now() - began
  const isRight = head.text().startsWith('HTTP/1.1 200 ') && isSame && place === content.bytes
  return { isRight, detail: `${place} bytes${isSame ? '' : ', others than were stored'}; ${head.text()}`, ms }
}

/** Separates the headers of a response from its body as the chunks arrive. */
function createHead(): { take(chunk: Buffer): Buffer; text(): string } {
  let received: Buffer = Buffer.alloc(0)
  let end = -1
  return {
    take(chunk) {
      if (end >= 0) return chunk
      received = Buffer.concat([received, chunk])
      end = received.indexOf('\r\n\r\n')
      return end < 0 ? Buffer.alloc(0) : received.subarray(end + 4)
    },
    text: () => received.toString('latin1', 0, end < 0 ? received.length : end),
  }
}

/** Never rejects: a broken connection counts as closed, and the bytes received so far are checked. */
function until(socket: Socket, event: 'close' | 'drain'): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()))
}

function open(port: number, take: (chunk: Buffer) => void): Socket {
  const buffer = Buffer.alloc(readBytes)
  const onread = {
    buffer,
    callback: (count: number) => {
      take(buffer.subarray(0, count))
      return true
    },
  }
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
  socket.on('error', () => {}).setTimeout(msMax, () => socket.destroy())
  return socket
}

function headOf({ method, path, headers }: Target, more: Readonly<Record<string, string>>): string {
  const all = { host: '127.0.0.1', connection: 'close', ...headers, ...more }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}
