import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const names = ['protocol', 'sdk', 'cli', 'mcp', 'server']

/** Outside of the workspace, so that a package finds what its own manifest names and nothing else. */
const consumer = mkdtempSync(path.join(tmpdir(), 'purser-published-'))
const installed = path.join(consumer, 'node_modules', '@purser')
const database = `published_${randomBytes(8).toString('hex')}`

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
}

beforeAll(async () => {
  const built = await run(process.execPath, [path.join(root, 'build.ts'), installed])
  expect(built).toMatchObject({ code: 0, stderr: '' })
  for (const name of names) linkDependencies(name)
})

afterAll(async () => {
  rmSync(consumer, { recursive: true, force: true })
  await administer(`drop database if exists ${database} with (force)`)
})

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(path.join(installed, name, 'package.json'), 'utf8'))
}

/** What `npm install` would do, from the workspace's own disk. */
function linkDependencies(name: string): void {
  const { paths } = createRequire(path.join(root, 'packages', name, 'package.json')).resolve
  for (const dependency of Object.keys(manifestOf(name).dependencies ?? {})) {
    if (dependency.startsWith('@purser/')) continue
    const found = (paths(dependency) ?? [])
      .map((place) => path.join(place, dependency))
      .find((place) => existsSync(place))
    const link = path.join(installed, name, 'node_modules', dependency)
    mkdirSync(path.dirname(link), { recursive: true })
    symlinkSync(found ?? `${dependency} is not installed`, link)
  }
}

interface Ended {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const own = { PATH: process.env.PATH ?? '', ...env }
  return new Promise((resolve) => {
    execFile(program, args, { cwd: consumer, env: own, timeout: 180_000 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

function program(name: string): string {
  return path.join(installed, 'server', manifestOf('server').bin[name] ?? `no program ${name}`)
}

/** By version: the Node that runs this test, and each other one on the path that the packages say they run on. */
const nodes = new Map([[process.version, process.execPath]])
for (const place of (process.env.PATH ?? '').split(':')) {
  const node = path.join(place, 'node')
  const version = existsSync(node) ? execFileSync(node, ['--version'], { encoding: 'utf8' }).trim() : ''
  if (Number.parseInt(version.slice(1), 10) >= 20) nodes.set(version, node)
}

test.each([...nodes])(
  'the published SDK and protocol run in Node %s, with none of the frameworks beside them',
  async (_version, node) => {
    const script = `
    const { createPurser } = await import('@purser/sdk')
    const { payMiddleware } = await import('@purser/sdk/express')
    const hono = await import('@purser/sdk/hono')
    const { payHook } = await import('@purser/sdk/fastify')
    const { withPayment } = await import('@purser/sdk/next')
    const { createPayingFetch } = await import('@purser/sdk/pay')
    const { formatAmount } = await import('@purser/protocol')
    const { default: eip55 } = await import('@purser/protocol/vectors/eip55.json', { with: { type: 'json' } })
    const found = [createPurser({ apiKey: 'k', baseUrl: 'http://127.0.0.1:1' }).payments.verify, payMiddleware, hono.payMiddleware, payHook, withPayment, createPayingFetch]
    console.log(...found.map((one) => typeof one), formatAmount(10_000n, 6), eip55.vectors.length > 0)`
    writeFileSync(path.join(consumer, 'run.mjs'), script)
    const { stdout, stderr } = await run(node, ['--no-warnings', 'run.mjs'])
    expect({ stdout, stderr }).toEqual({ stdout: `${'function '.repeat(6)}0.01 true\n`, stderr: '' })
  },
)

test.each([...nodes])(
  'the published MCP server answers with its tools and its guide in Node %s',
  async (_version, node) => {
    const { composeApiKey } = await import('@purser/protocol')
    const script = `
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const client = new Client({ name: 'consumer', version: '0' })
    const [program, env] = [process.argv[2], { PURSER_API_KEY: process.argv[3], PURSER_BASE_URL: 'http://127.0.0.1:9' }]
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [program, '--allow-money'], env, stderr: 'ignore' }))
    const { tools } = await client.listTools()
    const pages = (await client.listResources()).resources
    for (const { uri } of pages) await client.readResource({ uri })
    console.log(tools.some(({ name }) => name === 'transfers_create'), pages.length > 10)
    await client.close()`
    const directory = path.join(installed, 'mcp')
    writeFileSync(path.join(directory, 'consumer.mjs'), script)
    const started = path.join(directory, manifestOf('mcp').bin['purser-mcp'] ?? 'no program')
    const key = composeApiKey('test', new Uint8Array(32))
    const { stdout, stderr } = await run(node, ['--no-warnings', path.join(directory, 'consumer.mjs'), started, key])
    expect({ stdout, stderr }).toEqual({ stdout: 'true true\n', stderr: '' })
  },
)

test.each([
  ['nodenext', 'nodenext'],
  ['bundler', 'esnext'],
])('a consumer that resolves modules as %s gets the types', async (moduleResolution, module) => {
  const source = `
    import { formatAmount, type Network } from '@purser/protocol'
    import { createPurser, type Verification } from '@purser/sdk'
    import { readConfig } from '@purser/server'
    const purser = createPurser({ apiKey: 'k', baseUrl: 'http://127.0.0.1:1' })
    export const verify: (...request: Parameters<typeof purser.payments.verify>) => Promise<Verification> = purser.payments.verify
    export const text: string = formatAmount(1n, 6)
    export const chain = (network: Network): number => network.chainId
    // @ts-expect-error money is a bigint
    formatAmount(1, 6)
    // @ts-expect-error there is no such option
    createPurser({ apiKey: 'k', baseUrl: 'http://127.0.0.1:1', nothing: true })
    // @ts-expect-error the environment is an object
    readConfig('DATABASE_URL', [], [])`
  const compilerOptions = {
    module,
    moduleResolution,
    target: 'es2023',
    lib: ['es2023', 'dom'],
    types: [],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  }
  writeFileSync(path.join(consumer, 'consumer.ts'), source)
  writeFileSync(path.join(consumer, 'package.json'), '{ "type": "module" }')
  writeFileSync(path.join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['consumer.ts'] }))
  const tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  expect(await run(process.execPath, [tsc, '-p', '.'])).toEqual({ code: 0, stdout: '', stderr: '' })
})

test('the published service lists what its configuration lacks and ends with 2', async () => {
  const { code, stderr } = await run(program('purser-serve'), [])
  expect(code).toBe(2)
  expect(stderr).toContain('DATABASE_URL: is missing')
  expect(stderr).toContain('KEY_ENCRYPTION_KEY_FILE: is missing')
})

test('the published programs set up an empty database, make a key, serve it and stop in order', async () => {
  await administer(`create database ${database}`)
  const DATABASE_URL = inject('postgresUrl').replace(/^(postgres(?:ql)?:\/\/[^/?]*)\/[^?]*/, `$1/${database}`)
  const args = 'admin create-organisation --name Shop --email owner@shop.test --format json'.split(' ')
  expect(await run(program('purser-admin'), args, { DATABASE_URL })).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('run purser migrate'),
  })
  expect(await run(program('purser-admin'), ['migrate'], { DATABASE_URL })).toMatchObject({ code: 0, stderr: '' })
  const made = await run(program('purser-admin'), args, { DATABASE_URL })
  expect(made).toMatchObject({ code: 0, stderr: '' })

  const service = serve(DATABASE_URL)
  const ended = once(service, 'exit')
  try {
    const headers = { authorization: `Bearer ${JSON.parse(made.stdout).apiKeys[0].key}` }
    const answer = await fetch(`http://127.0.0.1:${await portOf(service)}/account`, { headers })
    expect(await answer.json()).toMatchObject({ email: 'owner@shop.test' })
    service.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  } finally {
    service.kill('SIGKILL')
  }
})

function serve(databaseUrl: string): ChildProcess {
  return spawn(program('purser-serve'), [], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: databaseUrl,
      DATABASE_DURABILITY: 'single',
      BASE_URL: 'http://purser.test',
      DASHBOARD_URL: 'http://dashboard.test',
      KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      FILES_DIR: path.join(consumer, 'files'),
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
    },
  })
}

async function portOf({ stdout }: ChildProcess): Promise<number> {
  if (stdout === null) throw new Error('nothing to read from')
  for await (const line of createInterface(stdout)) {
    const entry: { msg?: string; port?: number } = JSON.parse(line)
    if (entry.msg === 'purser is up' && entry.port !== undefined) return entry.port
  }
  throw new Error('the service ended before it was up')
}

test('what is published holds no test and no generator, and every migration', () => {
  const published = globSync('**/*', { cwd: installed, exclude: ['**/node_modules'] })
  expect(published.filter((file) => /\.test\.|print-/.test(file))).toEqual([])
  const migrations = globSync('*.sql', { cwd: path.join(root, 'packages/server/src/platform/db/migrations') })
  expect(migrations.length).toBeGreaterThan(0)
  expect(published).toEqual(expect.arrayContaining(migrations.map((file) => `server/platform/db/migrations/${file}`)))
})
