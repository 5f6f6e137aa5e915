import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import { bodyBytesMax } from '../src/platform/http/server.ts'
import type { Operation } from '../src/platform/operation.ts'
import { type WireAnswer, whyNotDeclared } from './declared.ts'
import { asKey, asSent, type Requested, sendRaw } from './raw-requests.ts'
import { makeResources, type Resources } from './resources.ts'
import { samplesOf } from './samples.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
let org: Org
let ids: Resources

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  ids = await makeResources(world, org)
})
afterAll(async () => {
  await world?.stop()
})

const each = operations.map((operation) => [operation.id, operation] as const)
const withMethodOfBodies = each.filter(([, { method }]) => method !== 'GET')

function send(base: string, operation: Operation, changes: Requested = {}): Promise<WireAnswer> {
  return sendRaw(base, operation, {
    ...asSent(operation, org.testKey, samplesOf(ids)[operation.id]?.() ?? {}),
    ...changes,
  })
}

/** Status and code of a problem, and why it is not declared, if it is not. */
function reported(operation: Operation, response: WireAnswer): readonly unknown[] {
  const { type } = JSON.parse(response.text)
  return [response.status, String(type).replace(/.*\//, ''), whyNotDeclared(operation, response)]
}

test.each(withMethodOfBodies)(
  '%s declares its problems for a body that is too large, and for one without a type',
  async (_, operation) => {
    const largest = operation.bodyBytesMax ?? bodyBytesMax
    const tooLarge = await send(world.base, operation, { body: 'x'.repeat(largest + 1), headers: asKey(org.testKey) })
    // An operation that streams its body has checked the type first.
    if (operation.streamsInput === undefined)
      expect(reported(operation, tooLarge)).toEqual([413, 'payload-too-large', undefined])
    const odd = await send(world.base, operation, {
      body: '{}',
      headers: { ...asKey(org.testKey), 'content-type': ';' },
    })
    expect(reported(operation, odd)).toEqual([415, 'unsupported-media-type', undefined])
  },
)

test.each(each.filter(([, { path }]) => path.includes('{')))(
  '%s declares its answer to a path name that is no text, or longer than any id',
  async (_, operation) => {
    for (const name of ['%zz', 'x'.repeat(600)]) {
      const params = Object.fromEntries([...operation.path.matchAll(/\{(\w+)\}/g)].map(([, param]) => [param, name]))
      expect(reported(operation, await send(world.base, operation, { params }))).toEqual([404, 'not-found', undefined])
    }
  },
)

test('every operation declares its rate limit error, with Retry-After', async () => {
  const { base, server } = await world.another({ keyLimit: { perSecond: 0.001, burst: 1 } })
  await send(base, operations.find(({ id }) => id === 'account.get') ?? expect.unreachable(), {})
  for (const [, operation] of each) {
    const response = await send(base, operation)
    expect(reported(operation, response)).toEqual([429, 'rate-limit-exceeded', undefined])
    expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(response.headers.get('ratelimit')).toMatch(/^"default";r=0;t=[1-9]\d*$/)
    expect(response.headers.get('ratelimit-policy')).toMatch(/^"default";q=1;w=\d+$/)
  }
  await server.stop()
})

test('every operation declares the error for an unreachable database, with Retry-After', async () => {
  const way = await wayTo(world.config.databaseUrl)
  const { base, server } = await world.another({ databaseUrl: way.url, role: 'api' })
  way.close()
  for (const [, operation] of each) {
    const response = await send(base, operation)
    expect(reported(operation, response)).toEqual([503, 'service-unavailable', undefined])
    expect(response.headers.get('retry-after')).toBe('1')
  }
  await server.stop()
})

/** A proxy in front of the database, which can be closed. The run's PostgreSQL listens on a socket in a directory. */
async function wayTo(url: string): Promise<{ readonly url: string; close(): void }> {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-socket-'))
  const hosts = new URLSearchParams(url.slice(url.indexOf('?')))
  const name = `.s.PGSQL.${hosts.get('port')}`
  const behind = path.join(String(hosts.get('host')), name)
  const sockets = new Set<net.Socket>()
  const proxy = net.createServer((caller) => {
    const onward = net.connect(behind)
    for (const socket of [caller, onward]) sockets.add(socket.on('error', () => undefined))
    caller.pipe(onward).pipe(caller)
  })
  proxy.listen(path.join(directory, name))
  await once(proxy, 'listening')
  hosts.set('host', directory)
  return {
    url: `${url.slice(0, url.indexOf('?'))}?${hosts}`,
    close() {
      proxy.close()
      for (const socket of sockets) socket.destroy()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** What no test here can cause at each address: a slow body, an endless header, an internal error. */
test.each(each)('%s declares the answers that the server may give to any request', (_, operation) => {
  for (const [status, code] of [
    [400, 'bad-request'],
    [408, 'request-timeout'],
    [431, 'request-header-fields-too-large'],
    [500, 'internal-error'],
  ] as const) {
    const headers = new Headers({
      'content-type': 'application/problem+json; charset=utf-8',
      'x-request-id': 'req_01h455vb4pex5vsknk084sn02q',
      ratelimit: '"default";r=1;t=0',
      'ratelimit-policy': '"default";q=1;w=1',
    })
    const type = `http://purser.test/problems/${code}`
    const text = JSON.stringify({ type, title: 'A', status, detail: 'A.', requestId: 'req_01h455vb4pex5vsknk084sn02q' })
    expect(whyNotDeclared(operation, { status, headers, text })).toBeUndefined()
  }
})

test('an answer with an undeclared status, code or header field is reported as undeclared', async () => {
  const operation = operations.find(({ id }) => id === 'account.get') ?? expect.unreachable()
  const good = await send(world.base, operation)
  expect(whyNotDeclared(operation, good)).toBeUndefined()
  expect(whyNotDeclared(operation, { ...good, status: 418 })).toMatch(/418 is not declared/)
  const withMore = new Headers([...good.headers, ['x-powered-by', 'us']])
  expect(whyNotDeclared(operation, { ...good, headers: withMore })).toMatch(/x-powered-by/)
  const other = await send(world.base, operation, { headers: {} })
  const text = other.text.replaceAll('unauthorized', 'vault-sealed')
  expect(whyNotDeclared(operation, { ...other, text })).toMatch(/not declared to be vault-sealed/)
})
