import net from 'node:net'
import { runAsChild } from './child-side.ts'
import { headerIn } from './load.ts'

/**
 * A minimal customer's server on raw sockets. It accepts every request at once, except those whose path begins with
 * `/hang/`, which it never responds. `GET /arrived?from=<n>` returns the requests since the n-th, `GET /count` their
 * number.
 */
const arrived: Arrived[] = []
const sockets = new Set<net.Socket>()

/** One request that came, as the benchmark asks for it. `at` is of the machine's clock, in milliseconds. */
interface Arrived {
  readonly path: string
  readonly eventId: string
  readonly at: number
  /** The whole request of every so many, to check what it is signed with. */
  readonly bytes?: string
}

const keptEvery = 50
const headEnd = Buffer.from('\r\n\r\n')
const lengthMarks = ['\r\ncontent-length: ', '\r\nContent-Length: '].map((mark) => Buffer.from(mark))
const idMarks = [Buffer.from('\r\nwebhook-id: ')]
const taken = Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')

await runAsChild(async () => {
  const server = net.createServer({ noDelay: true }, serve)
  server.listen(0, '127.0.0.1')
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  return {
    ready: { port: String(address.port) },
    async stop() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
})

function serve(socket: net.Socket): void {
  let received: Buffer = Buffer.alloc(0)
  sockets.add(socket)
  socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    for (let length = requestLength(received); length !== undefined; length = requestLength(received)) {
      const response = responseTo(received.subarray(0, length))
      received = received.subarray(length)
      if (response !== undefined) socket.write(response)
    }
  })
}

function requestLength(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return undefined
  const length = end + headEnd.length + Number(headerIn(bytes, end, lengthMarks) ?? 0)
  return bytes.length < length ? undefined : length
}

function responseTo(request: Buffer): Buffer | undefined {
  const line = request.toString('latin1', 0, request.indexOf('\r\n'))
  const path = line.split(' ')[1] ?? ''
  if (line.startsWith('GET ')) return arrivedSince(path)
  const at = performance.timeOrigin + performance.now()
  const eventId = headerIn(request, request.indexOf(headEnd), idMarks) ?? ''
  const isKept = arrived.length % keptEvery === 0
  arrived.push({ path, eventId, at, ...(isKept && { bytes: request.toString('base64') }) })
  return path.startsWith('/hang/') ? undefined : taken
}

function arrivedSince(path: string): Buffer {
  const [, from] = /^\/arrived\?from=(\d{1,9})$/.exec(path) ?? []
  const body = JSON.stringify(from === undefined ? { count: arrived.length } : arrived.slice(Number(from)))
  return Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}
