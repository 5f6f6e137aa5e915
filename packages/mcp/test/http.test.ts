import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { composeApiKey } from '@purser/protocol'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { aMaster, aTransferStage, bodyFrom, type TransferStage } from '../../server/test/transfer-stage.ts'
import { tools } from '../src/generated/tools.ts'
import { openCallers } from '../src/http/callers.ts'
import { mcpHttpServer } from '../src/http/http-server.ts'
import { mcpServer } from '../src/server.ts'
import { anHttpAgent, listening, program, type Revision } from './stage.ts'

let stage: TransferStage
beforeAll(async () => {
  stage = await aTransferStage({ network: 'base-sepolia' })
})
afterAll(() => stage?.stop())

const revisions: readonly Revision[] = ['2025-11-25', '2026-07-28']
const unknownKey = composeApiKey('test', new Uint8Array(32).fill(7))

/** The server with every tool, and what it reported. */
async function aServer({ baseUrl = stage.world.base, hosts = [] as readonly string[], proxies = 0 } = {}) {
  const faults: Error[] = []
  const calls: FollowedCall[] = []
  const options = {
    baseUrl,
    serverOf: (deps, waitingOf) => mcpServer({ ...deps, tools, version: '0.1.0' }, followed(calls, waitingOf)),
    onError: (error) => void faults.push(error),
  } satisfies Parameters<typeof mcpHttpServer>[0]
  const { port } = await listening(mcpHttpServer(options, { hosts, proxies }))
  return { url: new URL(`http://127.0.0.1:${port}/mcp`), port, faults, calls }
}

interface FollowedCall {
  /** Whether the server knows that its client does not wait any more. */
  readonly isLost: () => boolean
  readonly ended: Promise<void>
}

type WaitingOf = NonNullable<Parameters<typeof mcpServer>[1]>

/** Adds each call of a tool to `calls`. */
function followed(calls: FollowedCall[], waitingOf: WaitingOf): WaitingOf {
  return (request) => {
    const waiting = waitingOf(request)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    calls.push({ isLost: waiting.isLost, ended })
    const end = (): void => {
      waiting.end()
      resolve()
    }
    return { ...waiting, end }
  }
}

/** The service, except that nothing it creates is answered before `answer` is called. */
async function aLateService() {
  const { promise: answered, resolve: response } = Promise.withResolvers<void>()
  const proxy = createServer((req, res) => {
    const { url: path, method, headers } = req
    const sent = request(stage.world.base + path, { method, headers, agent: false }, async (from) => {
      if (method === 'POST') await answered
      res.writeHead(from.statusCode ?? 502, from.headers)
      from.pipe(res)
    })
    req.pipe(sent.on('error', () => res.destroy()))
  })
  return { baseUrl: `http://127.0.0.1:${(await listening(proxy)).port}`, response }
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

async function transfersOf(walletId: string): Promise<number> {
  return (await stage.world.call(stage.key, 'GET', `/wallet-infra/transfers?fromWalletId=${walletId}`)).list.length
}

const listTools = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })

function post(url: URL, headers: Record<string, string>, body = listTools): Promise<Response> {
  const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
  return fetch(url, { method: 'POST', headers: all, body })
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

test.each(revisions)('the official client lists, reads and calls over HTTP in revision %s', async (revision) => {
  const { url, faults } = await aServer()
  const { client, call } = await anHttpAgent(url, stage.key, revision)
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(tools.map(({ name }) => name))
  expect(client.getInstructions()).toMatch(/^Test environment/)
  const [guide] = (await client.readResource({ uri: 'purser://docs/mcp-server' })).contents
  expect(guide).toMatchObject({ mimeType: 'text/markdown' })
  const vault = await call('vaults_create', { description: revision })
  expect((await call('vaults_get', { id: vault.structured.id })).structured).toMatchObject({ description: revision })
  await expect(call('organisations_apiKeys_list')).rejects.toMatchObject({ code: -32_602 })
  expect(faults).toEqual([])
})

test.each(revisions)('each client acts with its own key alone in revision %s', async (revision) => {
  const { url } = await aServer()
  const other = await stage.world.organisation()
  const live = await anHttpAgent(url, stage.org.liveKey, revision)
  expect(live.client.getInstructions()).toMatch(/^LIVE environment/)
  const [mine, theirs] = [await anHttpAgent(url, stage.key, revision), await anHttpAgent(url, other.testKey, revision)]
  const vault = await mine.call('vaults_create')
  expect(await theirs.call('vaults_get', { id: vault.structured.id })).toMatchObject({
    isError: true,
    read: { status: 404 },
  })
  expect(await live.call('vaults_get', { id: vault.structured.id })).toMatchObject({
    isError: true,
    read: { status: 404 },
  })
  expect((await mine.call('vaults_get', { id: vault.structured.id })).isError).toBe(false)
})

test('a key that may not read has the places of its own account', async () => {
  const find = openCallers({
    baseUrl: stage.world.base,
    serverOf: () => expect.unreachable(),
    onError: () => undefined,
  })
  const other = await stage.world.organisation()
  const owners = new Set<string | null>()
  for (const { testKey } of [stage.org, other]) {
    const limited = { name: 'pays', environment: 'test', scopes: ['money'] }
    const made = await stage.world.call(testKey, 'POST', '/organisations/current/api-keys', limited)
    const shareOwner = made.headers.get('x-service-share')
    expect(await find(String(made.body.key), '203.0.113.9')).toMatchObject({ shareOwner })
    owners.add(shareOwner)
  }
  expect(owners.size).toBe(2)
})

test('a key that is missing, malformed or unknown is a 401 before any message, and is not repeated', async () => {
  const { url, faults } = await aServer()
  for (const headers of [
    {},
    bearer('x'),
    bearer(`${stage.key}x`),
    bearer(unknownKey),
    { authorization: 'Basic eDp5' },
  ]) {
    const refused = await post(url, headers)
    const text = await refused.text()
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(text).not.toContain(unknownKey.slice(12))
  }
  expect((await post(url, bearer(stage.key))).status).toBe(200)
  expect(faults).toEqual([])
})

test('after many unknown keys of an address no other key of it is checked for a while; known keys and other addresses are served', async () => {
  const { url } = await aServer({ proxies: 1 })
  const from = (address: string, key: string) =>
    post(url, { ...bearer(key), 'x-forwarded-for': `198.51.100.7, ${address}` })
  expect((await from('2001:db8:1:2::1', stage.key)).status).toBe(200)
  const statuses: number[] = []
  for (let index = 0; index < 62; index += 1) {
    const invented = composeApiKey('test', new Uint8Array(32).fill(index + 10))
    statuses.push((await from(`2001:db8:1:2::${index}`, invented)).status)
  }
  expect(statuses.slice(0, 60).every((status) => status === 401)).toBe(true)
  expect(statuses.slice(60)).toEqual([429, 429])
  expect((await from('2001:db8:1:2::1', stage.key)).status).toBe(200)
  const { testKey: neverSeen } = await stage.world.organisation()
  expect((await from('2001:db8:1:2::1', neverSeen)).status).toBe(429)
  expect((await from('203.0.113.9', neverSeen)).status).toBe(200)
})

test('a key that cannot be checked is a 503 with when to try again', async () => {
  const { url } = await aServer({ baseUrl: 'http://127.0.0.1:9' })
  const refused = await post(url, bearer(stage.key))
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
})

test('only named hosts are served, and pages only from these', async () => {
  const { url } = await aServer({ hosts: ['mcp.example.com'] })
  const ask = (headers: Record<string, string>) => post(url, { ...bearer(stage.key), ...headers })
  expect((await ask({ origin: 'https://evil.example' })).status).toBe(403)
  expect((await ask({ origin: 'null' })).status).toBe(403)
  expect((await ask({ origin: 'https://mcp.example.com' })).status).toBe(200)
  const statusFor = (host: string) => rawStatus(url, { host, ...bearer(stage.key) })
  expect(await statusFor('evil.example')).toBe(403)
  expect(await statusFor('mcp.example.com')).toBe(200)
  expect(await statusFor('localhost')).toBe(200)
})

/** `fetch` sets `Host` itself. */
function rawStatus({ port }: URL, headers: Readonly<Record<string, string>>): Promise<number> {
  const socket = connect(Number(port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const lines = Object.entries({
    ...headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': String(listTools.length),
  }).map(([name, value]) => `${name}: ${value}`)
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${listTools}`)
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk) => resolve(Number(String(chunk).split(' ')[1])))
    socket.once('error', reject)
  })
}

test('another path, another method, a long message and one that is no JSON are refused', async () => {
  const { url } = await aServer()
  const key = bearer(stage.key)
  expect((await post(new URL('/', url), key)).status).toBe(404)
  expect((await fetch(url, { headers: { ...key, accept: 'text/event-stream' } })).status).toBe(405)
  expect((await post(url, key, '{')).status).toBe(400)
  expect((await post(url, { ...key, 'content-type': 'text/plain' })).status).toBe(415)
  const long = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { x: 'x'.repeat(1_100_000) } })
  expect((await post(url, key, long)).status).toBe(413)
})

test('a key has at most 32 requests at once', async () => {
  const { url, port } = await aServer()
  expect((await post(url, bearer(stage.key))).status).toBe(200)
  const connections = Array.from({ length: 32 }, () => {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    const head = `POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${stage.key}\r\n`
    socket.write(`${head}content-type: application/json\r\ncontent-length: 10\r\n\r\n`)
    return socket
  })
  await expect.poll(async () => (await post(url, bearer(stage.key))).status).toBe(429)
  for (const socket of connections) socket.destroy()
  await expect.poll(async () => (await post(url, bearer(stage.key))).status).toBe(200)
})

test.each(revisions)('a transfer that a client gives up and sends again is one, in revision %s', async (revision) => {
  const { baseUrl, response } = await aLateService()
  const { url, calls } = await aServer({ baseUrl })
  const { call } = await anHttpAgent(url, stage.key, revision)
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  const giving = new AbortController()
  const given = call('transfers_create', body, giving.signal)
  given.catch(() => undefined)
  await expect.poll(() => transfersOf(master.id)).toBe(1)
  giving.abort()
  await expect(given).rejects.toThrow()
  // The server reads that the call is canceled. Then the call ends there, after its client has gone.
  await expect.poll(() => calls[0]?.isLost()).toBe(true)
  response()
  await calls[0]?.ended
  const again = await call('transfers_create', body)
  expect([again.isError, again.structured.fromWalletId]).toEqual([false, master.id])
  expect(await transfersOf(master.id)).toBe(1)
})

test('a transfer whose connection breaks before the result is one when it is sent again', async () => {
  const { baseUrl, response } = await aLateService()
  const { url, calls } = await aServer({ baseUrl })
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  const leaving = new AbortController()
  const params = { name: 'transfers_create', arguments: body }
  const message = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const all = { ...headers, ...bearer(stage.key) }
  const left = fetch(url, { method: 'POST', headers: all, body: message, signal: leaving.signal })
  const read = left.then((response) => response.text())
  read.catch(() => undefined)
  await expect.poll(() => transfersOf(master.id)).toBe(1)
  // Node collects what nothing refers to; the closed connection is noticed all the same.
  for (let round = 0; round < 5; round += 1) {
    collectGarbage()
    await delay(20)
  }
  leaving.abort()
  await expect(read).rejects.toThrow()
  await expect.poll(() => calls[0]?.isLost()).toBe(true)
  response()
  await calls[0]?.ended
  const { call } = await anHttpAgent(url, stage.key, '2025-11-25')
  expect((await call('transfers_create', body)).isError).toBe(false)
  expect(await transfersOf(master.id)).toBe(1)
})

test('two clients with one key, who send one transfer without keys at one moment, move money once', async () => {
  const { url } = await aServer()
  const [left, right] = [
    await anHttpAgent(url, stage.key, '2025-11-25'),
    await anHttpAgent(url, stage.key, '2026-07-28'),
  ]
  const master = await aMaster(stage)
  const body = bodyFrom(master)
  const [one, other] = await Promise.all([left.call('transfers_create', body), right.call('transfers_create', body)])
  expect([one.isError, other.isError, one.structured.id]).toEqual([false, false, other.structured.id])
  expect(await transfersOf(master.id)).toBe(1)
})

test('the program serves HTTP with the tools that its options allow, logs no key, and ends at a signal', async () => {
  const env = { PATH: process.env.PATH, HOME: '/nowhere', PURSER_BASE_URL: stage.world.base }
  const child = spawn(process.execPath, [program, '--http', '0', '--only', 'vaults'], { env })
  onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk))
  await expect.poll(() => log, { timeout: 20_000 }).toMatch(/at http:\/\/127\.0\.0\.1:\d+\/mcp\n/)
  const url = new URL(/http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(log)?.[0] ?? '')
  const { client, call } = await anHttpAgent(url, stage.key, '2025-11-25')
  const { tools: listed } = await client.listTools()
  expect(listed.map(({ name }) => name)).toEqual(expect.arrayContaining(['vaults_list', 'vaults_get']))
  expect(listed.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([])
  await expect(call('vaults_create')).rejects.toMatchObject({ code: -32_602 })
  expect(await post(url, bearer(unknownKey)).then(({ status }) => status)).toBe(401)
  expect((await post(url, bearer(stage.key), '{')).status).toBe(400)
  expect(log).not.toMatch(/svc_|_sk_/)
  child.kill('SIGTERM')
  const [code, signal] = await once(child, 'close')
  expect([code, signal]).toEqual([0, null])
})
