import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { createPurser, NotFoundError, type Purser } from '../src/index.ts'
import { fileForm } from '../src/multipart.ts'
import { apiKey } from './fake-purser.ts'
import { bodyOf, serve } from './pay-stage.ts'

afterEach(() => {
  vi.useRealTimers()
})

function clientOf(baseUrl: string): Purser {
  return createPurser({ apiKey, baseUrl, retry: { delayMsFirst: 1, delayMsMax: 2 } })
}

interface Received {
  readonly name: string
  readonly type: string
  readonly bytes: Buffer
  readonly headers: IncomingMessage['headers']
}

/** Reads an upload as any server would. */
async function receive(req: IncomingMessage, body: Buffer): Promise<Received> {
  const headers = { 'content-type': req.headers['content-type'] ?? '' }
  const file = (await new Response(new Uint8Array(body), { headers }).formData()).get('file')
  if (!(file instanceof File)) throw new Error('there is no file')
  return { name: file.name, type: file.type, bytes: Buffer.from(await file.arrayBuffer()), headers: req.headers }
}

function json(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

/** A server that takes files; the first `resets` connections break when the upload is there. */
async function aVault(resets = 0) {
  const received: Received[] = []
  let left = resets
  const url = await serve(async (req, res) => {
    received.push(await receive(req, await bodyOf(req)))
    if (left-- > 0) return void req.socket.destroy()
    json(res, 201, { id: 'fil_1', name: received.at(-1)?.name })
  })
  return { received, purser: clientOf(url) }
}

const text = 'the report\r\n--not a boundary\r\n'
const bytes = new TextEncoder().encode(text)

async function* pieces() {
  for (const byte of bytes) yield Uint8Array.of(byte)
}

const sources: [string, () => Parameters<Purser['vaults']['files']['add']>[1]][] = [
  ['a Blob', () => new Blob([bytes])],
  ['bytes', () => bytes],
  ['a part of a larger array', () => new Uint8Array([0, ...bytes, 0]).subarray(1, -1)],
  ['a stream', () => new Blob([bytes]).stream()],
  ['an async iterable', () => pieces()],
]

test.each(sources)('%s arrives whole, with the name and the type that were given', async (_what, source) => {
  const { received, purser } = await aVault()
  const added = await purser.vaults.files.add('vlt_1', source(), { name: 'report.txt', mimeType: 'text/plain' })
  expect(added).toEqual({ id: 'fil_1', name: 'report.txt' })
  const [file] = received
  expect([received.length, file?.name, file?.type, file?.bytes.toString()]).toEqual([
    1,
    'report.txt',
    'text/plain',
    text,
  ])
  expect(file?.headers).toMatchObject({ authorization: `Bearer ${apiKey}`, 'idempotency-key': expect.any(String) })
})

test('a File brings its own name and type, and what has none is called file', async () => {
  const { received, purser } = await aVault()
  await purser.vaults.files.add('vlt_1', new File([bytes], 'own.csv', { type: 'text/csv' }))
  await purser.vaults.files.add('vlt_1', bytes)
  expect(received.map(({ name, type }) => [name, type])).toEqual([
    ['own.csv', 'text/csv'],
    ['file', 'application/octet-stream'],
  ])
})

test.each(['a"b.txt', 'a\r\nX-Evil: 1.txt', 'größe 📄.txt', '"; name="other', ''])(
  'the name %j stays in its place',
  async (name) => {
    const { received, purser } = await aVault()
    await purser.vaults.files.add('vlt_1', bytes, { name })
    expect([received.length, received[0]?.name, received[0]?.bytes.toString()]).toEqual([1, name, text])
  },
)

test('a type that is no header is refused before anything is sent', async () => {
  const { received, purser } = await aVault()
  expect(() => purser.vaults.files.add('vlt_1', bytes, { mimeType: 'text/plain\r\nX-Evil: 1' })).toThrow(TypeError)
  expect(received).toEqual([])
})

test('a stream leaves while it is still being made', async () => {
  let arrived: () => void = () => {}
  const firstPiece = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const url = await serve(async (req, res) => {
    let length = 0
    for await (const chunk of req) {
      length += chunk.length
      if (length > 65_536) arrived()
    }
    json(res, 201, { id: 'fil_1' })
  })
  async function* slowly() {
    yield new Uint8Array(131_072)
    // A sender that buffers the whole stream first waits here forever.
    await firstPiece
    yield new Uint8Array(131_072)
  }
  expect(await clientOf(url).vaults.files.add('vlt_1', slowly())).toEqual({ id: 'fil_1' })
})

test('a small piece of a slow source leaves without the next one', async () => {
  const arrived = Promise.withResolvers<void>()
  const url = await serve(async (req, res) => {
    let received = ''
    for await (const chunk of req) {
      received += chunk
      if (received.includes('a line')) arrived.resolve()
    }
    json(res, 201, { id: 'fil_1', name: received.match(/line/g)?.length })
  })
  async function* slowly() {
    yield new TextEncoder().encode('a line\n')
    // The next line is written when the first one has arrived.
    await arrived.promise
    yield new TextEncoder().encode('another line\n')
  }
  expect(await clientOf(url).vaults.files.add('vlt_1', slowly())).toMatchObject({ name: 2 })
})

/** An iterator of JavaScript code, whose functions return no promises. */
function iterated(pieces: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  const values = pieces.values()
  const iterator = { next: () => values.next(), return: () => undefined }
  return { [Symbol.asyncIterator]: () => iterator as unknown as AsyncIterator<Uint8Array> }
}

test('an iterator whose functions return no promises is sent, and may be left before its end', async () => {
  const { received, purser } = await aVault()
  await purser.vaults.files.add('vlt_1', iterated([bytes, bytes]))
  expect(received[0]?.bytes.toString()).toBe(text + text)
  const { body } = fileForm(iterated([new Uint8Array(16_384), new Uint8Array(16_384)]), {})
  if (!(body instanceof ReadableStream)) throw new Error('the form is no stream')
  const reader = body.getReader()
  for (const _ of ['the head', 'the first piece']) await reader.read()
  await expect(reader.cancel()).resolves.toBeUndefined()
})

test('a fast source waits for a slow server', async () => {
  let made = 0
  let advance: () => void = () => {}
  const stopped = new Promise<void>((resolve) => {
    advance = resolve
  })
  const url = await serve(async (req, res) => {
    await stopped
    await bodyOf(req)
    json(res, 201, { id: 'fil_1' })
  })
  async function* quickly() {
    for (; made < 4_096; made++) yield new Uint8Array(65_536)
  }
  const adding = clientOf(url).vaults.files.add('vlt_1', quickly())
  const seen: number[] = []
  const hasStopped = () => made > 0 && seen[seen.push(made) - 2] === made
  await expect.poll(hasStopped, { interval: 200, timeout: 60_000 }).toBe(true)
  expect(made).toBeLessThan(2_048)
  advance()
  await adding
  expect(made).toBe(4_096)
})

test('an upload whose answer is lost is sent again as it was, and a stream is not', async () => {
  const again = await aVault(1)
  await again.purser.vaults.files.add('vlt_1', new Blob([bytes]))
  const [first, second] = again.received
  expect(again.received).toHaveLength(2)
  expect(second?.headers['content-type']).toBe(first?.headers['content-type'])
  expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key'])
  expect(second?.bytes).toEqual(first?.bytes)

  const once = await aVault(1)
  const lost = once.purser.vaults.files.add('vlt_1', pieces())
  await expect(lost).rejects.toMatchObject({ name: 'ConnectionError', code: 'connection-failed' })
  expect(once.received).toHaveLength(1)
})

test('a source that breaks is an error, and nothing is sent again', async () => {
  const { received, purser } = await aVault()
  async function* broken() {
    yield bytes
    throw new Error('the disk broke')
  }
  await expect(purser.vaults.files.add('vlt_1', broken())).rejects.toMatchObject({ code: 'connection-failed' })
  expect(received).toEqual([])
})

test('a file is streamed, and a range is read if requested', async () => {
  const seen: IncomingMessage['headers'][] = []
  const url = await serve((req, res) => {
    seen.push(req.headers)
    res.writeHead(206, { 'content-type': 'text/plain', 'content-range': 'bytes 4-9/30' }).end('report')
  })
  const response = await clientOf(url).vaults.files.get('vlt/1', 'fil_1', { headers: { range: 'bytes=4-9' } })
  expect([response.status, await response.text()]).toEqual([206, 'report'])
  expect(seen).toMatchObject([{ authorization: `Bearer ${apiKey}`, range: 'bytes=4-9', accept: '*/*' }])
  expect(seen[0]).not.toHaveProperty('idempotency-key')
})

test('a download may take longer than the timeout, which is for its beginning', async () => {
  vi.useFakeTimers()
  const body = new TransformStream<Uint8Array, Uint8Array>()
  const slow: typeof fetch = async (_input, init) => {
    init?.signal?.addEventListener('abort', () => void body.writable.abort(init.signal?.reason))
    return new Response(body.readable)
  }
  const { vaults } = createPurser({ apiKey, baseUrl: 'https://purser.test', fetch: slow, timeoutMs: 200 })
  const response = await vaults.files.get('vlt_1', 'fil_1')
  const text = response.text()
  await vi.advanceTimersByTimeAsync(60_000)
  const writer = body.writable.getWriter()
  await writer.write(bytes)
  await writer.close()
  expect(await text).toBe(new TextDecoder().decode(bytes))
})

test('a download that does not begin is given up at the timeout', async () => {
  vi.useFakeTimers()
  const never: typeof fetch = (_input, init) =>
    new Promise((_resolve, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
  const { vaults } = createPurser({
    apiKey,
    baseUrl: 'https://purser.test',
    fetch: never,
    timeoutMs: 200,
    maxRetries: 0,
  })
  const refused = expect(vaults.files.get('vlt_1', 'fil_1')).rejects.toMatchObject({ code: 'timeout' })
  await vi.advanceTimersByTimeAsync(200)
  await refused
})

test('a file that is not there is a NotFoundError with its code', async () => {
  const record = {
    type: 'http://purser.test/problems/file-not-found',
    title: 'No',
    status: 404,
    detail: 'No such file.',
  }
  const url = await serve(
    (_req, res) => void res.writeHead(404, { 'x-request-id': 'req_1' }).end(JSON.stringify(record)),
  )
  const refused = clientOf(url).vaults.files.get('vlt_1', 'fil_1')
  await expect(refused).rejects.toBeInstanceOf(NotFoundError)
  await expect(refused).rejects.toMatchObject({ code: 'file-not-found', status: 404, requestId: 'req_1' })
})
