import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { quantile } from './figures.ts'
import { getRequest, postRequest, readResponse, runLoad } from './load.ts'

test('every answer is kept beside its own request, whichever connection carried it', async () => {
  const port = await serveEcho()
  const requests = Array.from({ length: 200 }, (_, index) => postRequest('/', `${'é'.repeat(index)}${index}`))

  const { responses } = await runLoad({ port, connections: 8, requests, msMax: 10_000 })

  expect(responses.map(({ status, body }) => `${status} ${body}`)).toEqual(
    requests.map((_, index) => `200 ${'é'.repeat(index)}${index}`),
  )
})

test('a connection that ends without an answer counts as a wrong answer and not as none', async () => {
  const port = await serveEcho()
  const { responses } = await runLoad({ port, connections: 1, requests: [getRequest('/cut')], msMax: 10_000 })
  expect(responses.map(({ status }) => status)).toEqual([0])
})

test('an answer is not read before its last byte is there', () => {
  const whole = Buffer.from('HTTP/1.1 402 Payment Required\r\nContent-Length: 4\r\n\r\nbody')
  for (let length = 0; length < whole.length; length += 1)
    expect(readResponse(whole.subarray(0, length))).toBeUndefined()
  expect(readResponse(whole)).toEqual({ status: 402, body: 'body', length: whole.length })
})

test('a chunked answer is not read before its last chunk is there', () => {
  const whole = Buffer.from('HTTP/1.1 402 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n')
  for (let length = 0; length < whole.length; length += 1)
    expect(readResponse(whole.subarray(0, length))).toBeUndefined()
  expect(readResponse(whole)).toEqual({ status: 402, body: 'abcd', length: whole.length })
})

test('a quantile is a value that was measured', () => {
  expect([0.5, 0.99, 1].map((share) => quantile([4, 1, 3, 2], share))).toEqual([2, 4, 4])
  expect(quantile([], 0.5)).toBe(0)
})

async function serveEcho(): Promise<number> {
  const server = createServer(async (request, response) => {
    if (request.url === '/cut') return response.destroy()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(Buffer.from(chunk))
    const body = Buffer.concat(chunks)
    response.writeHead(200, { 'content-length': body.length }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

test('an answer without content ends with its headers, and the next one on the connection is its own', () => {
  const empty = 'HTTP/1.1 204 No Content\r\nx: y\r\n\r\n'
  const two = Buffer.from(`${empty}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`)
  expect(readResponse(two.subarray(0, 10))).toBeUndefined()
  expect(readResponse(two)).toEqual({ status: 204, body: '', length: empty.length })
  expect(readResponse(two.subarray(empty.length))).toMatchObject({ status: 200, body: 'ok' })
})
