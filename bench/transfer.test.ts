import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createContent, download, upload } from './transfer.ts'

const content = createContent(2_500_000)
const form = { before: 'what comes before it', after: 'and after' }

test('an upload is the form with the whole content in it, to the byte', async () => {
  const hash = createHash('sha256').update(form.before)
  for (const piece of content.pieces()) hash.update(piece)
  const expected = hash.update(form.after).digest('hex')
  const port = await serve(async (request, response) => {
    const got = createHash('sha256')
    for await (const chunk of request) got.update(chunk)
    response.writeHead(201, { 'content-length': 64 }).end(got.digest('hex'))
  })

  const answer = await upload({ port, method: 'POST', path: '/', headers: {} }, content, form)

  expect([answer.status, answer.body]).toEqual([201, expected])
})

test('an upload whose connection is cut has status 0, and is not waited for', async () => {
  const port = await serve((request) => request.once('data', () => request.destroy()))
  const response = await upload({ port, method: 'POST', path: '/', headers: {} }, content, form)
  expect(response.status).toBe(0)
})

test('the sum of a content is that of its pieces', () => {
  const hash = createHash('sha256')
  for (const piece of content.pieces()) hash.update(piece)
  expect(content.sha256).toBe(hash.digest('hex'))
})

test.each([
  ['whole', (whole: Buffer) => whole, true],
  ['with another byte at its end', (whole: Buffer) => withOther(whole, whole.length - 1), false],
  ['with another byte in the middle', (whole: Buffer) => withOther(whole, 1_234_567), false],
  ['without its last byte', (whole: Buffer) => whole.subarray(0, -1), false],
  ['with a byte too many', (whole: Buffer) => Buffer.concat([whole, whole.subarray(0, 1)]), false],
  ['with two chunks in the wrong order', swapped, false],
  ['empty', () => Buffer.alloc(0), false],
])('a download that comes %s is distinguished from a correct one', async (_name, change, isRight) => {
  const sent = change(Buffer.concat([...content.pieces()]))
  const port = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': sent.length }).end(sent)
  })
  const answer = await download({ port, method: 'GET', path: '/', headers: {} }, content)
  expect(answer.isRight).toBe(isRight)
})

test('the content under another status is no right download', async () => {
  const port = await serve((_request, response) => {
    response.writeHead(206).end(Buffer.concat([...content.pieces()]))
  })
  const answer = await download({ port, method: 'GET', path: '/', headers: {} }, content)
  expect(answer.isRight).toBe(false)
})

function withOther(whole: Buffer, place: number): Buffer {
  const changed = Buffer.from(whole)
  changed[place] = (changed[place] ?? 0) ^ 1
  return changed
}

function swapped(whole: Buffer): Buffer {
  const chunk = 65_536
  return Buffer.concat([whole.subarray(chunk, 2 * chunk), whole.subarray(0, chunk), whole.subarray(2 * chunk)])
}

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
