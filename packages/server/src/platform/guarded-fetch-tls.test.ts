import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer as createNetServer, type Server, type Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { createGuardedFetch, type GuardedOptions, type PostOutcome } from './guarded-fetch.ts'

const name = 'hooks.example.test'
const body = new TextEncoder().encode('{}')

interface Certificate {
  readonly cert: string
  readonly key: string
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const size = content.length < 128 ? [content.length] : [0x82, content.length >> 8, content.length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const text = (tag: number, value: string) => der(tag, Buffer.from(value, 'latin1'))
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))

/** A self-signed certificate for these DNS names. Source: RFC 5280 section 4.1; Ed25519 as in RFC 8410. */
function certificateFor(...names: readonly string[]): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const algorithm = der(0x30, oid('2b6570'))
  const issuer = der(0x30, der(0x31, der(0x30, oid('550403'), text(0x0c, names[0] ?? ''))))
  const validity = der(0x30, text(0x17, '200101000000Z'), text(0x17, '491231235959Z'))
  const alternatives = der(0x30, ...names.map((dnsName) => text(0x82, dnsName)))
  const extensions = der(0xa3, der(0x30, der(0x30, oid('551d11'), der(0x04, alternatives))))
  const version = der(0xa0, der(0x02, Buffer.from([2])))
  const serial = der(0x02, Buffer.from([1]))
  const spki = publicKey.export({ format: 'der', type: 'spki' })
  const content = der(0x30, version, serial, algorithm, issuer, validity, issuer, spki, extensions)
  const signature = der(0x03, Buffer.from([0]), signed(content, privateKey))
  const whole = der(0x30, content, algorithm, signature).toString('base64')
  const cert = `-----BEGIN CERTIFICATE-----\n${whole.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`
  return { cert, key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString() }
}

function signed(content: Buffer, key: KeyObject): Buffer {
  return sign(null, content, key)
}

const good = certificateFor(name)

async function portOf(server: Server): Promise<number> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket.on('error', () => {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** A receiver that records the requested name, in TLS and in HTTP. */
async function aReceiver(certificate: Certificate): Promise<{ port: number; served: string[] }> {
  const served: string[] = []
  const server = createServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] }, (socket: TLSSocket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      const host = /^host: (.*)\r$/im.exec(chunk.toString('latin1'))?.[1]
      served.push(`${socket.servername || 'none'} ${host} ${socket.alpnProtocol || 'none'}`)
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    })
  })
  server.on('tlsClientError', () => {})
  return { port: await portOf(server), served }
}

function post(url: string, options: Partial<GuardedOptions> = {}): Promise<PostOutcome> {
  const lookup = async () => ['127.0.0.1']
  const guarded = createGuardedFetch({ reach: 'public-and-private', lookup, ca: good.cert, ...options })
  onTestFinished(() => guarded.close())
  return guarded.post({ url, group: 'wh_1', headers: {}, body })
}

const tlsFailed = { kind: 'failed', failure: 'tls-failed' }

test('the name of the URL is sent in TLS and in HTTP, to the address that was looked up, over HTTP/1.1', async () => {
  const { port, served } = await aReceiver(good)
  expect(await post(`https://${name}:${port}/in`)).toMatchObject({ kind: 'responded', status: 200 })
  expect(served).toEqual([`${name} ${name}:${port} http/1.1`])
})

test('a certificate of another name is refused even if it is trusted, since only the name server vouches for the address', async () => {
  const other = certificateFor('other.example.test')
  const { port, served } = await aReceiver(other)
  expect(await post(`https://${name}:${port}/in`, { ca: other.cert })).toEqual(tlsFailed)
  expect(served).toEqual([])
})

test('an untrusted certificate is refused', async () => {
  const { port, served } = await aReceiver(good)
  expect(await post(`https://${name}:${port}/in`, { ca: certificateFor(name).cert })).toEqual(tlsFailed)
  expect(await post(`https://${name}:${port}/in`, { ca: undefined })).toEqual(tlsFailed)
  expect(served).toEqual([])
})

test('an address in the URL sends no server name, and a certificate for a name is refused', async () => {
  const { port, served } = await aReceiver(good)
  expect(await post(`https://127.0.0.1:${port}/in`)).toEqual(tlsFailed)
  expect(served).toEqual([])
})

test('a receiver that speaks plain HTTP where TLS is due is a failure', async () => {
  const server = createNetServer((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  expect(await post(`https://${name}:${await portOf(server)}/in`)).toMatchObject({ kind: 'failed' })
})

test('a receiver that accepts the connection and never completes the handshake is limited by the connect timeout', async () => {
  const port = await portOf(createNetServer(() => {}))
  // The limit of the whole request is longer than that of this test.
  const limits = { connectMs: 300, totalMs: 600_000 }
  expect(await post(`https://${name}:${port}/in`, { limits })).toEqual({ kind: 'failed', failure: 'timeout' })
})

test('the limit of what is received for one request holds under TLS, and is of one request there too', async () => {
  let sent = 0
  const flood = createServer(good, (socket) => {
    const pour = (): void => {
      while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(1_000))) sent += 28_000
    }
    socket.on('error', () => {}).on('drain', pour)
    socket.once('data', pour)
  })
  expect(await post(`https://${name}:${await portOf(flood)}/`)).toEqual({ kind: 'failed', failure: 'answer-malformed' })
  expect(sent).toBeLessThan(2 ** 24)
  let connections = 0
  const honest = createServer(good, (socket) => {
    connections += 1
    const response = `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(8_000)}\r\ncontent-length: 2\r\n\r\nok`
    socket.on('error', () => {}).on('data', () => socket.write(response))
  })
  // A look-up takes at least one turn of the event loop, in which a finished connection becomes free.
  const lookup = () => new Promise<string[]>((resolve) => setImmediate(resolve, ['127.0.0.1']))
  const guarded = createGuardedFetch({ reach: 'public-and-private', lookup, ca: good.cert })
  onTestFinished(() => guarded.close())
  const url = `https://${name}:${await portOf(honest)}/`
  for (let i = 0; i < 60; i++)
    expect(await guarded.post({ url, group: 'wh_1', headers: {}, body })).toMatchObject({ status: 200, body: 'ok' })
  expect(connections).toBe(1)
})
