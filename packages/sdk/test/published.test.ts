import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const names = ['protocol', 'sdk', 'cli', 'mcp', 'server']

/** Outside of the workspace, so that a package finds what its own manifest names and nothing else. */
const place = mkdtempSync(path.join(tmpdir(), 'purser-published-'))
const npm = { npm_config_cache: path.join(place, 'cache'), npm_config_update_notifier: 'false' }
const database = `published_${randomBytes(8).toString('hex')}`

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly bundleDependencies?: readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
}

beforeAll(async () => {
  const built = await run(process.execPath, [path.join(root, 'build.ts'), path.join(place, 'built')])
  expect(built).toMatchObject({ code: 0, stderr: '' })
  const packing = ['pack', '--silent', '--pack-destination', place]
  for (const name of names) packing.push(path.join(place, 'built', name))
  expect(await run('npm', packing, npm)).toMatchObject({ code: 0 })
  for (const name of names) installAlone(name)
})

afterAll(async () => {
  rmSync(place, { recursive: true, force: true })
  await administer(`drop database if exists ${database} with (force)`)
})

/** A folder in which one package is installed, and none of the others. */
function folderOf(name: string): string {
  return path.join(place, 'alone', name)
}

function installed(name: string): string {
  return path.join(folderOf(name), 'node_modules', '@purser', name)
}

function tarballOf(name: string): string {
  return path.join(place, `purser-${name}-0.1.0.tgz`)
}

function manifestOf(name: string): Manifest {
  return JSON.parse(readFileSync(path.join(installed(name), 'package.json'), 'utf8'))
}

/** Unpacks a package's tarball by itself, beside links to what it needs from npm. */
function installAlone(name: string): void {
  mkdirSync(installed(name), { recursive: true })
  execFileSync('tar', ['-xzf', tarballOf(name), '--strip-components=1', '-C', installed(name)])
  linkDependencies(name)
}

/** Installs the packages of others as `npm install` would, from the workspace's own disk. */
function linkDependencies(name: string): void {
  const { paths } = createRequire(path.join(root, 'packages', name, 'package.json')).resolve
  const { dependencies = {}, bundleDependencies = [] } = manifestOf(name)
  for (const dependency of Object.keys(dependencies)) {
    if (bundleDependencies.includes(dependency)) continue
    const found = (paths(dependency) ?? [])
      .map((directory) => path.join(directory, dependency))
      .find((directory) => existsSync(directory))
    const link = path.join(folderOf(name), 'node_modules', dependency)
    mkdirSync(path.dirname(link), { recursive: true })
    symlinkSync(found ?? `${dependency} is not installed`, link)
  }
}

interface Ended {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

function run(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = place,
): Promise<Ended> {
  const own = { PATH: process.env.PATH ?? '', ...env }
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env: own, timeout: 180_000 }, (error, stdout, stderr) =>
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
  return path.join(installed('server'), manifestOf('server').bin[name] ?? `no program ${name}`)
}

/** By version: the Node that runs this test, and each other one on the path that the packages say they run on. */
const nodes = new Map([[process.version, process.execPath]])
for (const place of (process.env.PATH ?? '').split(':')) {
  const node = path.join(place, 'node')
  const version = existsSync(node) ? execFileSync(node, ['--version'], { encoding: 'utf8' }).trim() : ''
  if (Number.parseInt(version.slice(1), 10) >= 20) nodes.set(version, node)
}

test.each(names)('the sources of %s are not packed, and the message names the build that is', async (name) => {
  const { code, stderr } = await run(
    'npm',
    ['pack', '--pack-destination', place],
    npm,
    path.join(root, 'packages', name),
  )
  expect(code).not.toBe(0)
  expect(stderr).toContain(`npm run build && npm pack ./packages/${name}/dist`)
  expect(manifestOf(name)).not.toHaveProperty('scripts')
})

test("npm installs the SDK's tarball without a registry and without a sibling", async () => {
  const folder = path.join(place, 'offline')
  mkdirSync(folder)
  writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  const args = ['install', '--offline', '--no-audit', '--no-fund', '--legacy-peer-deps', tarballOf('sdk')]
  expect(await run('npm', args, npm, folder)).toMatchObject({ code: 0 })
  expect(readdirSync(path.join(folder, 'node_modules', '@purser'))).toEqual(['sdk'])
  const script = "import('@purser/sdk/pay').then((pay) => console.log(Object.keys(pay).includes('createPayingFetch')))"
  expect(await run(process.execPath, ['-e', script], {}, folder)).toEqual({ code: 0, stdout: 'true\n', stderr: '' })
})

test.each([...nodes])(
  'the published SDK runs in Node %s, by import and by require, with none of the frameworks beside it',
  async (_version, node) => {
    const found = `[purser.createPurser, express.payMiddleware, hono.payMiddleware, fastify.payHook, next.withPayment, pay.createPayingFetch]`
    const print = `console.log(...${found}.map((one) => typeof one))`
    const entries = { purser: '', express: '/express', hono: '/hono', fastify: '/fastify', next: '/next', pay: '/pay' }
    const load = (how: string) =>
      Object.entries(entries).map(([name, entry]) => `const ${name} = ${how}('@purser/sdk${entry}')\n`)
    writeFileSync(path.join(folderOf('sdk'), 'run.mjs'), `${load('await import').join('')}${print}`)
    writeFileSync(path.join(folderOf('sdk'), 'run.cjs'), `${load('require').join('')}${print}`)
    for (const file of ['run.mjs', 'run.cjs']) {
      const { stdout, stderr } = await run(node, ['--no-warnings', file], {}, folderOf('sdk'))
      expect({ file, stdout, stderr }).toEqual({ file, stdout: `${'function '.repeat(6).trim()}\n`, stderr: '' })
    }
  },
)

/** No dependency of the published server, so it is found where the workspace has it. */
const officialClient = pathToFileURL(path.join(root, 'node_modules/@modelcontextprotocol/client/dist')).href

test.each([...nodes])('the published protocol package runs in Node %s', async (_version, node) => {
  const script = `
    const { formatAmount } = await import('@purser/protocol')
    const { default: eip55 } = await import('@purser/protocol/vectors/eip55.json', { with: { type: 'json' } })
    console.log(formatAmount(10_000n, 6), eip55.vectors.length > 0)`
  writeFileSync(path.join(folderOf('protocol'), 'run.mjs'), script)
  const { stdout, stderr } = await run(node, ['--no-warnings', 'run.mjs'], {}, folderOf('protocol'))
  expect({ stdout, stderr }).toEqual({ stdout: '0.01 true\n', stderr: '' })
})

test.each([...nodes])('the published command line explains itself in Node %s', async (_version, node) => {
  const started = path.join(installed('cli'), manifestOf('cli').bin.purser ?? 'no program')
  expect(await run(node, [started, 'help'])).toMatchObject({
    stdout: expect.stringContaining('usage: purser'),
    stderr: '',
  })
})

test.each([...nodes])(
  'the published MCP server answers with its tools and its guide in Node %s',
  async (_version, node) => {
    const script = `
    const { Client } = await import('${officialClient}/index.mjs')
    const { StdioClientTransport } = await import('${officialClient}/stdio.mjs')
    const client = new Client({ name: 'consumer', version: '0' })
    const [program, env] = [process.argv[2], { PURSER_API_KEY: process.argv[3], PURSER_BASE_URL: 'http://127.0.0.1:9' }]
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [program, '--allow-money'], env, stderr: 'ignore' }))
    const { tools } = await client.listTools()
    const pages = (await client.listResources()).resources
    for (const { uri } of pages) await client.readResource({ uri })
    console.log(tools.some(({ name }) => name === 'transfers_create'), pages.length > 10)
    await client.close()`
    const directory = folderOf('mcp')
    const { composeApiKey } = await import('@purser/protocol')
    writeFileSync(path.join(directory, 'consumer.mjs'), script)
    const started = path.join(installed('mcp'), manifestOf('mcp').bin['purser-mcp'] ?? 'no program')
    const key = composeApiKey('test', new Uint8Array(32))
    const { stdout, stderr } = await run(node, ['--no-warnings', path.join(directory, 'consumer.mjs'), started, key])
    expect({ stdout, stderr }).toEqual({ stdout: 'true true\n', stderr: '' })
  },
)

const sources: Readonly<Record<string, string>> = {
  sdk: `
    import { createPurser, type Verification } from '@purser/sdk'
    import { fileLedger } from '@purser/sdk/ledgers'
    import { createPayingFetch, type Ledger, type Signer } from '@purser/sdk/pay'
    import { unwrap } from '@purser/sdk/webhooks'
    const purser = createPurser({ apiKey: 'svc_test_sk_k', baseUrl: 'http://127.0.0.1:1' })
    export const verify: (...request: Parameters<typeof purser.payments.verify>) => Promise<Verification> = purser.payments.verify
    export const fetches = (signer: Signer): typeof fetch => createPayingFetch({ signer, limits: { perCall: '0.05' } })
    export const event = unwrap
    export const ledger: Ledger = fileLedger('budget.jsonl')
    // @ts-expect-error there is no such option
    createPurser({ apiKey: 'svc_test_sk_k', baseUrl: 'http://127.0.0.1:1', nothing: true })
    // @ts-expect-error a network of the protocol package, so its types are found
    createPayingFetch({ signer: { address: '0x00', signTypedData: async () => '0x' }, limits: { networks: ['nowhere'] } })`,
  protocol: `
    import { formatAmount, type Network } from '@purser/protocol'
    export const text: string = formatAmount(1n, 6)
    export const chain = (network: Network): number => network.chainId
    // @ts-expect-error money is a bigint
    formatAmount(1, 6)`,
  server: `
    import { readConfig } from '@purser/server'
    // @ts-expect-error the environment is an object
    readConfig('DATABASE_URL', [], [])`,
}

test.each([
  ['sdk', 'node16', 'node16', 'typescript-native'],
  ['sdk', 'nodenext', 'nodenext', 'typescript'],
  ['sdk', 'bundler', 'esnext', 'typescript-native'],
  ['protocol', 'nodenext', 'nodenext', 'typescript-native'],
  ['server', 'nodenext', 'nodenext', 'typescript-native'],
])(
  'the types of %s alone are right under %s, for modules and for CommonJS',
  async (name, moduleResolution, module, compiler) => {
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2023',
      lib: ['es2023', 'dom'],
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: name === 'server',
    }
    const [folder, files] = [folderOf(name), ['consumer.mts', 'consumer.cts']]
    for (const file of files) writeFileSync(path.join(folder, file), sources[name] ?? '')
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    const tsc = path.join(root, 'node_modules', compiler, 'bin', 'tsc')
    expect(await run(process.execPath, [tsc, '-p', '.'], {}, folder)).toEqual({ code: 0, stdout: '', stderr: '' })
  },
)

test('a program on a Node that is too old says what it needs', async () => {
  const old = [...nodes].find(([version]) => Number.parseInt(version.slice(1), 10) < 24)
  const text = readFileSync(program('purser-serve'), 'utf8').replace('process.versions.node, 10', '"20.1.0", 10')
  const faked = path.join(path.dirname(program('purser-serve')), 'faked.js')
  writeFileSync(faked, text)
  const ended = old === undefined ? await run(process.execPath, [faked]) : await run(old[1], [program('purser-serve')])
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(ended.stderr).toMatch(/^purser-serve needs Node 24 or newer\. This is Node \d+\.\d+\.\d+\.\n$/)
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
    const response = await fetch(`http://127.0.0.1:${await portOf(service)}/account`, { headers })
    expect(await response.json()).toMatchObject({ email: 'owner@shop.test' })
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
      FILES_DIR: path.join(place, 'files'),
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
  const built = path.join(place, 'built')
  const published = globSync('**/*', { cwd: built, exclude: ['**/node_modules'] })
  expect(published.filter((file) => /\.test\.|print-/.test(file))).toEqual([])
  const migrations = globSync('*.sql', { cwd: path.join(root, 'packages/server/src/platform/db/migrations') })
  expect(migrations.length).toBeGreaterThan(0)
  expect(published).toEqual(expect.arrayContaining(migrations.map((file) => `server/platform/db/migrations/${file}`)))
})
