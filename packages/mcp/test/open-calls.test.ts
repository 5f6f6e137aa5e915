import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { composeApiKey } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakePurser, startFakePurser } from '../../sdk/test/fake-purser.ts'
import { tools } from '../src/generated/tools.ts'
import { mcpHttpServer } from '../src/http/http-server.ts'
import { openKeys } from '../src/keys.ts'
import { mcpServer, type Served } from '../src/server.ts'
import { listening } from './stage.ts'

let fake: FakePurser
beforeAll(async () => {
  fake = await startFakePurser()
  fake.script('/organisations/current', {
    status: 200,
    body: { id: 'org_1' },
    headers: { 'x-service-organisation': 'org_1' },
  })
})
afterAll(() => fake?.stop())

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function toolOf(name: string) {
  const found = tools.find((tool) => tool.name === name)
  if (found === undefined) throw new Error('no such tool')
  return found
}

const tool = toolOf('vaults_documents_add')

/** A server without tools, and the state of the caller of the latest request. */
async function aServer() {
  let latest: Pick<Served, 'keys'> | undefined
  const options = {
    baseUrl: fake.baseUrl,
    serverOf: (deps) => {
      latest = deps
      return mcpServer({ ...deps, tools: [], version: '0.1.0' })
    },
    onError: () => undefined,
  } satisfies Parameters<typeof mcpHttpServer>[0]
  let at = 0
  // So fast that the rate of an organisation refuses none.
  const { port } = await listening(mcpHttpServer(options, { hosts: [], now: () => (at += 20) }))
  const statusFor = async (number: number): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${keyNumber(number)}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    })
    await response.arrayBuffer()
    return response.status
  }
  return { port, statusFor, open: () => latest?.keys.open(tool, { id: 'vlt_1' })?.key }
}

function keyNumber(number: number): string {
  const secret = new Uint8Array(32)
  secret.set([number % 256, number >> 8])
  return composeApiKey('test', secret)
}

test('calls whose answers nobody received take little memory, however long their arguments are', () => {
  const keys = openKeys(Date.now, () => 'mcp-1')({ name: 'key', shareOwner: 'org_1' })
  const long = 'x'.repeat(900_000)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let call = 0; call < 100; call++)
    expect(keys.open(tool, { data: { text: `${call}${long}` } })?.key).toBe('mcp-1')
  collectGarbage()
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 2 ** 20)
})

test('a key whose calls are open is a caller like any other, and finds them again after a thousand others', async () => {
  const { statusFor, open } = await aServer()
  expect(await statusFor(0)).toBe(200)
  const first = open()
  expect(first).toMatch(/^mcp-/)
  for (let number = 1; number < 1_000; number++) {
    expect(await statusFor(number)).toBe(200)
    expect(open()).not.toBe(first)
  }
  expect(await statusFor(1_000)).toBe(200)
  expect(await statusFor(0)).toBe(200)
  expect(open()).toBe(first)
})

test('a call that was refused before its key was looked up keeps the key only for another call that has it', () => {
  let made = 0
  const keys = openKeys(
    () => 0,
    () => `mcp-${++made}`,
  )({ name: 'key', shareOwner: 'org_1' })
  const open = () => keys.open(tool, { id: 'vlt_1' })
  expect(open()).toMatchObject({ key: 'mcp-1', isShared: false })
  keys.closeUnshared(tool, { id: 'vlt_1' })
  expect(open()).toMatchObject({ key: 'mcp-2', isShared: false })
  expect(open()).toMatchObject({ key: 'mcp-2', isShared: true })
  keys.closeUnshared(tool, { id: 'vlt_1' })
  expect(open()).toMatchObject({ key: 'mcp-2', isShared: true })
  keys.close(tool, { id: 'vlt_1' })
  expect(open()).toMatchObject({ key: 'mcp-3', isShared: false })
})

test('a key, an organisation and all together have a limit of open calls, and another organisation has a place', () => {
  let [at, made] = [0, 0]
  const keysOf = openKeys(
    () => at,
    () => `mcp-${++made}`,
  )
  const fill = (shareOwner: string, keyCount: number): number => {
    let opened = 0
    for (let key = 0; key < keyCount; key++) {
      const keys = keysOf({ name: `${shareOwner} ${key}`, shareOwner })
      for (let call = 0; call < 201; call++) if (keys.open(tool, { call }) !== undefined) opened += 1
    }
    return opened
  }
  expect(fill('org_0', 1)).toBe(200)
  expect(fill('org_1', 300)).toBe(49_900)
  expect(fill('org_2', 1)).toBe(200)
  at = 24 * 60 * 60 * 1_000
  expect(fill('org_1', 1)).toBe(200)
})
