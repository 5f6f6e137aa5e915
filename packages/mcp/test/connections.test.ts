import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { composeApiKey } from '@purser/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { mcpHttpServer } from '../src/http/http-server.ts'

/** A server that listens nowhere, and connections to it that send nothing. */
function aServer(proxies?: number) {
  let crowded = 0
  const serverOf = (): never => {
    throw new Error('nobody calls a tool')
  }
  const server = mcpHttpServer(
    { baseUrl: 'http://127.0.0.1:9', serverOf, onError: () => undefined },
    { hosts: [], onCrowded: () => (crowded += 1), ...(proxies !== undefined && { proxies }) },
  )
  const connect = (remoteAddress: string, sent: string[] = [], takes: 'all' | 'nothing' = 'all'): Duplex => {
    const write = (chunk: Buffer, _: string, done: () => void): void => {
      sent.push(chunk.toString())
      if (takes === 'all') done()
    }
    const socket = Object.assign(new Duplex({ read: () => undefined, write }), { remoteAddress })
    onTestFinished(() => void socket.destroy())
    server.emit('connection', socket)
    return socket
  }
  const openOf = (address: string, count: number): number =>
    Array.from({ length: count }, () => connect(address)).filter(({ destroyed }) => !destroyed).length
  return { connect, openOf, crowded: () => crowded }
}

test('an address has at most 64 connections, others have their own, and the server reports it once', () => {
  const { openOf, crowded } = aServer()
  expect(openOf('203.0.113.7', 64)).toBe(64)
  expect(crowded()).toBe(0)
  expect(openOf('203.0.113.7', 3)).toBe(0)
  expect(openOf('::ffff:203.0.113.7', 1)).toBe(0)
  expect(openOf('203.0.113.8', 1)).toBe(1)
  expect(crowded()).toBe(1)
})

test.each(['127.0.0.1', '::ffff:127.0.0.1', '::1'])('this machine, as %s, has as many as it opens', (address) => {
  const { openOf, crowded } = aServer()
  expect([openOf(address, 100), crowded()]).toEqual([100, 0])
})

test('silent connections of many addresses keep no new one out: the oldest of them is closed', () => {
  const { connect } = aServer()
  const [oldest, ...others] = Array.from({ length: 1_024 }, (_, index) => connect(`203.0.113.${index % 32}`))
  const newest = connect('198.51.100.7')
  expect([oldest?.destroyed, newest.destroyed]).toEqual([true, false])
  expect(others.filter(({ destroyed }) => destroyed)).toEqual([])
})

test('behind a proxy there is no limit for each address', () => {
  const { openOf, crowded } = aServer(1)
  expect([openOf('203.0.113.7', 100), crowded()]).toEqual([100, 0])
})

test('a connection beyond those of its address closes no connection of another', () => {
  const { connect } = aServer()
  const open = Array.from({ length: 1_024 }, (_, index) => connect(`203.0.113.${index % 16}`))
  expect(connect('203.0.113.3').destroyed).toBe(true)
  expect(open.filter(({ destroyed }) => destroyed)).toEqual([])
})

test('a connection that sends more than eight requests ahead is closed before one of them is answered', async () => {
  const { connect } = aServer()
  const sent: string[] = []
  const socket = connect('203.0.113.7', sent)
  const closed = once(socket, 'close')
  socket.push('POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n'.repeat(9))
  await closed
  expect(sent).toEqual([])
})

test('a silent connection is closed if it does not take its answer or has no request, and not while its request runs', async () => {
  const { connect } = aServer()
  const refused = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n'
  const sent: string[] = []
  const [reading, silent, idle] = [
    connect('203.0.113.7', sent),
    connect('203.0.113.7', sent, 'nothing'),
    connect('203.0.113.7'),
  ]
  // Its key is checked by a service that does not respond yet.
  const key = composeApiKey('test', new Uint8Array(32))
  reading.push(refused.replace('Content', `Authorization: Bearer ${key}\r\nContent`))
  silent.push(refused)
  await expect.poll(() => sent.join('')).toMatch(/^HTTP\/1.1 401/)
  for (const socket of [reading, silent, idle]) socket.emit('timeout')
  expect([reading.destroyed, silent.destroyed, idle.destroyed]).toEqual([false, true, true])
})
