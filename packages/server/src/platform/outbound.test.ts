import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOutbound, type Outbound } from './outbound.ts'

let outbound: Outbound
/** Sends the first half of a body, and the second one a moment later. */
const server = createServer((_, response) => {
  response.write('{"text":"')
  setTimeout(() => response.end('x"}'), 20)
})
let url: string

beforeAll(async () => {
  outbound = createOutbound()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  url = `http://127.0.0.1:${address.port}`
})
afterAll(async () => {
  await outbound.close()
  server.closeAllConnections()
  server.close()
})

test('few large responses are read at once, and each is read in its turn', async () => {
  let reading = 0
  let most = 0
  const createReader = () => {
    reading += 1
    most = Math.max(most, reading)
    return {
      write: () => undefined,
      end() {
        reading -= 1
        return 'read'
      },
    }
  }
  const limits = { timeoutMs: 10_000, bytesMax: 1, large: { bytesMax: 1_000, timeoutMs: 10_000, createReader } }
  const read = await Promise.all(Array.from({ length: 24 }, () => outbound.postJson(url, '{}', limits)))
  expect(read).toEqual(Array.from({ length: 24 }, () => 'read'))
  expect(most).toBeLessThanOrEqual(4)
})
