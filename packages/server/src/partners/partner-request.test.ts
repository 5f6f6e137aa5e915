import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createOutbound, type Outbound } from '../platform/outbound.ts'
import { type PartnerApi, requestPartner } from './partner-request.ts'

// A partner with hostile HTTP responses.

const bytesMax = 262_144
const mebibyte = 1_048_576
const Answer = z.object({ id: z.string() })

let server: Server
let outbound: Outbound
let api: PartnerApi
let respond: (response: ServerResponse, path: string) => void
let paths: string[]

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = String(request.url)
    paths.push(path)
    respond(response, path)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  outbound = createOutbound()
  api = { outbound, name: 'test', baseUrl, headers: { 'x-api-key': 'secret' }, limits: { timeoutMs: 60_000, bytesMax } }
})
beforeEach(() => {
  paths = []
})
afterAll(async () => {
  await outbound?.close()
  server?.closeAllConnections()
  await new Promise((resolve) => server?.close(resolve))
})

const get = (timeoutMs: number) =>
  requestPartner({ ...api, limits: { timeoutMs, bytesMax } }, { method: 'GET', path: '/quote' }, Answer)

async function expectUnavailable(timeoutMs: number): Promise<void> {
  await expect(get(timeoutMs)).rejects.toMatchObject({ code: 'partner-unavailable' })
  respond = (response) => void response.end('{"id":"next"}')
  expect(await get(60_000), 'the next request is not disturbed').toEqual({ ok: true, value: { id: 'next' } })
}

test('a partner that stops in the middle of its body is given up in time', async () => {
  respond = (response) => void response.writeHead(200, { 'content-length': '1000' }).write('{"id":')
  await expectUnavailable(200)
})

test.each(['\\u0000', '\\ud800'])('text with %s, which the database cannot store, is no answer', async (text) => {
  respond = (response) => void response.end(`{"id":"a${text}b"}`)
  await expectUnavailable(60_000)
})

test('a partner that sends a byte now and then is given up after the time of the whole request', async () => {
  respond = (response) => {
    const drip = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(drip))
  }
  await expectUnavailable(300)
})

test.each([200, 400, 503])('of 50 MB with status %d little more than the limit is read', async (status) => {
  let sentBytes = 0
  let closed: Promise<void> = Promise.resolve()
  respond = (response) => {
    closed = new Promise((resolve) => response.on('close', resolve))
    response.writeHead(status, { 'content-type': 'application/json' })
    const fill = (): void => {
      while (sentBytes < 50 * mebibyte) {
        sentBytes += 65_536
        if (!response.write(Buffer.alloc(65_536, ' '))) return void response.once('drain', fill)
      }
      response.end('{"id":"late"}')
    }
    fill()
  }
  await expectUnavailable(60_000)
  await closed
  expect(sentBytes, 'besides what the sockets buffer').toBeLessThan(25 * mebibyte)
})

test('an announced length of 50 MB is not waited for', async () => {
  respond = (response) => {
    response.writeHead(200, { 'content-length': String(50 * mebibyte) }).write(Buffer.alloc(bytesMax + 1, ' '))
  }
  await expectUnavailable(60_000)
})

test.each([301, 302, 303, 307, 308])(
  'a redirect with status %d is not followed and the API key goes nowhere else',
  async (status) => {
    respond = (response, path) => {
      if (path === '/quote') response.writeHead(status, { location: '/elsewhere' }).end()
      else response.end('{"id":"elsewhere"}')
    }
    await expect(get(60_000)).rejects.toMatchObject({ code: 'partner-unavailable' })
    expect(paths).toEqual(['/quote'])
  },
)

test.each([
  ['an empty body', ''],
  ['a second document', '{"id":"a"}{"id":"b"}'],
  ['text before the JSON', ')]}\',{"id":"a"}'],
  ['a page', '<html></html>'],
  ['another type', '{"id":1}'],
  ['a prototype', '{"__proto__":{"id":"a"}}'],
])('%s is not an answer', async (_, text) => {
  respond = (response) => void response.end(text)
  await expectUnavailable(60_000)
})
