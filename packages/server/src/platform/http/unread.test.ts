import { once } from 'node:events'
import net from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aToyServer, beginToys, endToys } from '../../../test/toy-server.ts'

beforeEach(beginToys)
afterEach(endToys)

/** Makes three requests whose responses are not read, and returns their statuses. */
async function unread(port: number, path: string, method = 'GET') {
  const sockets: net.Socket[] = []
  const statuses: string[] = []
  for (let count = 0; count < 3; count++) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
    sockets.push(socket)
    const answered = Promise.withResolvers<string>()
    socket.once('data', (bytes) => {
      socket.pause()
      answered.resolve(String(bytes))
    })
    socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer org1 key1\r\n\r\n`)
    statuses.push(/^HTTP\/1\.1 (\d+)/.exec(await answered.promise)?.[1] ?? '')
  }
  return {
    statuses,
    disconnect: () => sockets.map((socket) => socket.destroy()),
    /** Reads on, and returns which responses were cut before their end. */
    async areCut() {
      return Promise.all(
        sockets.map(async (socket) => {
          let bytes = 0
          socket.on('data', (more: Buffer) => {
            bytes += more.length
            if (bytes > 63_900_000) socket.destroy()
          })
          await once(socket.resume(), 'close')
          return bytes <= 63_900_000
        }),
      )
    },
  }
}

test('responses that an organisation does not read leave memory for those of another', async () => {
  const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 8_388_608 } })
  const { statuses, disconnect } = await unread(port, '/toys/large')
  expect(statuses, 'one counts as half of the memory').toEqual(['200', '503', '429'])
  const get = (authorization: string) => fetch(`${base}/toys/each?limit=5`, { headers: { authorization } })
  const other = await get('Bearer org2 key1')
  expect([other.status, (await other.text()).length > 900_000]).toEqual([200, true])
  disconnect()
  await expect.poll(async () => (await get('Bearer org1 key2')).status).toBe(200)
})

const unlimited = { perSecond: 1_000_000, burst: 1_000_000 }

test('responses of requests that change nothing are refused like those of a GET', async () => {
  const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 8_388_608 }, keyLimit: unlimited })
  const { statuses, disconnect } = await unread(port, '/toys/offer', 'POST')
  expect(statuses).toEqual(['200', '503', '503'])
  const headers = { authorization: 'Bearer org2 key1' }
  expect((await fetch(`${base}/toys/each?limit=5`, { headers })).status).toBe(200)
  disconnect()
})

test('what a request has changed is always reported, and the oldest response that its organisation has not read is cut', async () => {
  const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 8_388_608 }, keyLimit: unlimited })
  const { statuses, areCut } = await unread(port, '/toys/build', 'POST')
  expect(statuses).toEqual(['200', '200', '200'])
  const headers = { authorization: 'Bearer org2 key1' }
  expect((await fetch(`${base}/toys/each?limit=5`, { headers })).status).toBe(200)
  expect(await areCut()).toEqual([true, true, false])
})

test('pages that an address does not read leave memory for callers with a key, and the address waits', async () => {
  const { port, base } = await aToyServer({ limits: { bodiesBytesMax: 2_097_152 } })
  const { statuses, disconnect } = await unread(port, '/page/large')
  expect(statuses).toEqual(['200', '503', '429'])
  const headers = { authorization: 'Bearer org1 key1' }
  expect((await fetch(`${base}/toys/each?limit=4`, { headers })).status).toBe(200)
  disconnect()
})
