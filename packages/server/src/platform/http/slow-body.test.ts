import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { operation } from '../operation.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const bodyMsMax = 1_000
/** More often than the limit, and for longer than it. */
const dripMs = 100
const drips = 14

const guests = async () =>
  ({
    tenant: { organisationId: 'org_1', environment: 'test' },
    actor: { kind: 'guest', guestId: 'one' },
  }) as const

const operations = [
  operation({
    id: 'toys.create',
    method: 'POST',
    path: '/toys',
    summary: 'Make a toy.',
    input: z.strictObject({ name: z.string() }),
    output: z.strictObject({ name: z.string() }),
    guests,
    run: (_ctx, { body }) => body,
  }),
  operation({
    id: 'toys.files.add',
    method: 'POST',
    path: '/toys/{id}/files',
    summary: 'Put a file into a toy.',
    params: z.strictObject({ id: z.string() }),
    streamsInput: { mediaType: 'text/plain', schema: { type: 'string' } },
    output: z.strictObject({ bytes: z.int() }),
    guests,
    async run(_ctx, { stream }) {
      let bytes = 0
      for await (const chunk of stream ?? []) bytes += chunk.length
      return { bytes }
    },
  }),
]

let database: TestDatabase
let server: HttpServer
let port = 0

beforeEach(async () => {
  database = await freshDatabase()
  server = createHttpServer({
    deps: toyDeps(database.db),
    operations,
    pages: [],
    authenticate: () => Promise.reject(new Error('nobody has a key here')),
    keyLimit: { perSecond: 1_000, burst: 1_000 },
    addressLimit: { perSecond: 1_000, burst: 1_000 },
    trustProxy: false,
    bodyMsMax,
  })
  port = (await server.listen(0, '127.0.0.1')).port
})
afterEach(async () => {
  await server.close()
  await database.drop()
})

/** Sends a head, then a body byte by byte; answers all that came back once the server has closed the connection. */
async function dripping(path: string, type: string, { body, sent }: { body: string; sent: number }): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    answer += text
  })
  const closed = once(socket, 'close')
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n`,
  )
  for (const byte of body.slice(0, sent)) {
    await pause(dripMs)
    if (socket.destroyed || answer !== '') break
    socket.write(byte)
  }
  await closed
  return answer
}

const name = JSON.stringify({ name: 'x'.repeat(drips) })

test('a JSON body that drips for longer than the limit is answered 408 and its connection is cut', async () => {
  const answer = await dripping('/toys', 'application/json', { body: name, sent: name.length })
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(answer).toContain('/problems/request-timeout')
})

test('a body for an address that is not there is cut as soon', async () => {
  const answer = await dripping('/nowhere', 'application/json', { body: name, sent: name.length })
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
})

test('a body that is read as it comes may drip for longer than the limit', async () => {
  const body = 'x'.repeat(drips)
  const answer = await dripping('/toys/1/files', 'text/plain', { body, sent: drips })
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  expect(answer).toContain(JSON.stringify({ bytes: drips }))
})

test('a body that is read as it comes is cut where nothing of it comes for the limit', async () => {
  expect(await dripping('/toys/1/files', 'text/plain', { body: 'x'.repeat(100), sent: 2 })).not.toMatch(/^HTTP\/1\.1 2/)
})
