import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import path from 'node:path'
import { composeApiKey } from '@purser/protocol'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { startFakePurser } from '../../sdk/test/fake-purser.ts'
import { tools } from '../src/generated/tools.ts'
import type { HandlerOptions } from '../src/http/callers.ts'
import { mcpHttpServer } from '../src/http/http-server.ts'
import { mcpServer } from '../src/server.ts'
import { conformanceServer } from './conformance-server.ts'
import { aDirectory, listening } from './stage.ts'

const runner = path.resolve(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/conformance/dist/index.js',
)

const fake = await startFakePurser()
fake.script('/wallet-infra/chains', { status: 200, body: [] })
fake.script('/organisations/current', { status: 200, body: { id: 'org_1' } })
afterAll(() => fake.stop())

/** The server under test, behind a proxy that adds the key: the package can send none. */
async function served(serverOf: HandlerOptions['serverOf']): Promise<string> {
  const options = { baseUrl: fake.baseUrl, serverOf, onError: () => {} }
  const { port } = await listening(mcpHttpServer(options, { hosts: [] }))
  const authorization = `Bearer ${composeApiKey('test', new Uint8Array(32))}`
  const proxy = createServer((req, res) => {
    const { url: target, method, headers } = req
    const sent = request({ port, path: target, method, headers: { ...headers, authorization } }, (response) => {
      res.writeHead(response.statusCode ?? 500, response.headers)
      response.pipe(res)
    })
    req.pipe(sent)
  })
  return `http://127.0.0.1:${(await listening(proxy)).port}/mcp`
}

/**
 * Scenarios in which the server asks the client something, or in which streams are resumed: both need a session, which
 * the server does not keep. The package fails if one of them passes.
 */
const needSessions = [
  'tools-call-sampling',
  'tools-call-elicitation',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
  'server-sse-polling',
  'server-sse-multiple-streams',
]

/** Runs the official conformance package with these arguments, and answers how it ended. */
async function conformance(...args: readonly string[]): Promise<{ readonly code: unknown; readonly output: string }> {
  const child = spawn(process.execPath, [runner, 'server', ...args], {
    cwd: aDirectory(),
    env: { PATH: process.env.PATH },
  })
  onTestFinished(() => void child.kill())
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk))
  const [code] = await once(child, 'close')
  return { code, output }
}

test('the tools pass the scenarios of the conformance package that name no fixture', async () => {
  const url = await served((deps, waitingOf) => mcpServer({ ...deps, tools, version: '0' }, waitingOf))
  for (const scenario of ['server-initialize', 'ping', 'tools-list', 'resources-list', 'dns-rebinding-protection']) {
    const { code, output } = await conformance('--url', url, '--scenario', scenario)
    expect({ scenario, code, output }).toEqual({ scenario, code: 0, output: expect.any(String) })
  }
}, 120_000)

test('over its transport a server with the named fixtures passes every scenario that needs no session', async () => {
  const url = await served(conformanceServer)
  const baseline = path.join(aDirectory(), 'baseline.yml')
  writeFileSync(baseline, `server:\n${needSessions.map((one) => `  - ${one}\n`).join('')}`)
  const { code, output } = await conformance('--url', url, '--suite', 'all', '--expected-failures', baseline)
  expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('Total:') })
}, 120_000)
