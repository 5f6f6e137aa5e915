import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { sign } from './crash/load.ts'
import { endEveryService, type Service, spawnService, startService } from './crash/service.ts'
import { aDeployment, type Deployment, verifyBody } from './crash/stage.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { type Answer, aPayer, codeOf, request } from './world.ts'

let database: TestDatabase
let chain: DevChain
let deployment: Deployment
const cleanUps: (() => unknown)[] = []

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia' })
  deployment = await aDeployment({ databaseUrl: database.url, chain, env: { SETTLE_WAIT_MS: '20000' } })
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  // A service that a failed test left behind would settle the payments of the next one.
  await endEveryService()
})
afterAll(async () => {
  await chain?.stop()
  await database?.drop()
})

test('with nothing set it lists everything that is missing at once, each with how to set it, and exits 2', async () => {
  const bare = spawnService({})
  expect(await bare.ended).toBe(2)
  expect(bare.stdout()).toBe('')
  expect(bare.stderr()).toMatch(/^The configuration has 6 faults:\n/)
  for (const name of [
    'DATABASE_URL',
    'DATABASE_DURABILITY',
    'BASE_URL',
    'DASHBOARD_URL',
    'KEY_ENCRYPTION_KEY_FILE',
    'FILES_DIR',
  ]) {
    expect(bare.stderr()).toMatch(
      new RegExp(`^ {2}${name}: is missing\\n {4}(set it to|name a file of) \\S.{20,}$`, 'm'),
    )
  }
})

test('--help lists the settings and exits 0, whatever the environment has', async () => {
  const help = spawnService({}, ['--role', 'api', '--help'])
  expect(await help.ended).toBe(0)
  expect(help.stderr()).toBe('')
  expect(help.stdout()).toMatch(/^Usage: purser serve \[--role all\|api\|work\]\n/)
  expect(help.stdout()).toMatch(/^ {2}DATABASE_URL\n {6}set it to \S.{20,}$/m)
  for (const name of ['ACCESS_LOG', 'RPC_URL_BASE', 'TRUST_PROXY', 'WITNESS_DIR']) {
    expect(help.stdout()).toMatch(new RegExp(`^ {2}${name}$`, 'm'))
  }
})

test('every bad value is named with what would be valid, none is repeated, and it exits 2', async () => {
  const secret = 'hunter2hunter2'
  const bad = {
    DATABASE_URL: `mysql://purser:${secret}@db/purser`,
    BASE_URL: 'pay.example.com',
    KEY_ENCRYPTION_KEY: secret,
    PORT: '65536',
    METRICS_PORT: '-1',
    ENVIRONMENTS: 'test,prod',
    RPC_URL_BASE: `wss://node/${secret}`,
    LOG_LEVEL: 'loud',
    TRUST_PROXY: 'yes',
    SETTLE_WAIT_MS: '1e3',
    EIP6492_FACTORIES: '0x12',
    FILES_DIR: 'files',
  }
  const { KEY_ENCRYPTION_KEY: _, ...named } = bad
  const refused = spawnService({ ...deployment.env, ...bad }, ['--role', 'boss', '--rolle=api'])
  expect(await refused.ended).toBe(2)
  const output = refused.stderr()
  for (const name of [...Object.keys(named), 'KEY_ENCRYPTION_KEY_FILE', '--role', '--rolle=api']) {
    expect(output).toMatch(new RegExp(`^ {2}${name}: .+\\n {4}\\S.{10,}$`, 'm'))
  }
  expect(output).toContain('The configuration has 14 faults')
  expect(output).not.toContain(secret)
})

test('with everything set it is ready, serves metrics on a separate port, and SIGTERM ends it with 0', async () => {
  const service = await spawnService(deployment.env).up()
  expect(await statusOf(service.base, '/readyz')).toBe(200)
  expect(await statusOf(service.base, '/docs')).toBe(200)
  expect(await statusOf(service.base, '/metrics')).toBe(404)
  const metrics = `http://127.0.0.1:${service.metricsPort}`
  expect(await (await fetch(`${metrics}/metrics`)).text()).toContain('process_cpu_seconds_total')
  expect(await statusOf(metrics, '/readyz')).toBe(404)
  expect(await service.end('SIGTERM')).toBe(0)
  expect(service.stderr()).toBe('')
})

test('a stopping process reports that it is not ready and serves on, before its listener closes', async () => {
  const service = await spawnService({ ...deployment.env, STOP_DELAY_MS: '10000' }).up()
  const ended = service.end('SIGTERM')
  await expect.poll(() => statusOf(service.base, '/readyz'), { interval: 20 }).toBe(503)
  expect(await (await fetch(`${service.base}/readyz`)).json()).toEqual({ status: 'stopping' })
  expect(await statusOf(service.base, '/healthz')).toBe(200)
  expect((await settled(service)).status).toBeLessThan(300)
  expect(await ended).toBe(0)
})

test('a request under way at one port does not delay the close of the other', async () => {
  const service = await startService(deployment.env)
  const late = connect(Number(service.metricsPort), '127.0.0.1')
  cleanUps.push(() => late.destroy())
  await once(late, 'connect')
  late.write('GET /metrics HTTP/1.1\r\nhost: purser\r\n')
  expect(await statusOf(service.base, '/healthz')).toBe(200)
  const ended = service.end('SIGTERM')
  const refused = () =>
    fetch(`${service.base}/healthz`).then(
      () => false,
      () => true,
    )
  await expect.poll(refused, { timeout: 10_000 }).toBe(true)
  expect(await Promise.race([ended, 'still open'])).toBe('still open')
  late.end('connection: close\r\n\r\n')
  expect(await ended).toBe(0)
})

test('SIGTERM to npm ends the service that it started', async () => {
  const npm = spawn('npm', ['run', '--silent', 'serve'], {
    cwd: path.resolve(import.meta.dirname, '../../..'),
    env: { ...deployment.env, PATH: process.env.PATH, HOME: tmpdir() },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanUps.push(() => npm.kill('SIGKILL'))
  let stdout = ''
  npm.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  await expect.poll(() => stdout).toContain('purser is up')
  const { port } = z.object({ port: z.number() }).parse(JSON.parse(lineOf(stdout, 'purser is up')))
  const ended = new Promise((resolve) => npm.once('close', resolve))
  npm.kill('SIGTERM')
  await ended
  expect(stdout).toContain('"stopping"')
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow('fetch failed')
})

test('a service without a network, or whose nodes do not respond, reports it in its log and its readiness', async () => {
  const networksOf = async (base: string) => Object(await (await fetch(`${base}/readyz`)).json()).networks
  const configured = await startService(deployment.env)
  await expect.poll(() => networksOf(configured.base)).toBe('reachable')
  const none = await startService({ ...deployment.env, RPC_URL_BASE_SEPOLIA: '' })
  expect(await networksOf(none.base)).toBe('none')
  expect(lineOf(none.stdout(), 'no network is configured')).toContain('set RPC_URL_<NETWORK>')
  const deaf = await startService({ ...deployment.env, RPC_URL_BASE_SEPOLIA: 'http://127.0.0.1:1' })
  await expect.poll(() => networksOf(deaf.base)).toBe('unreachable')
  const lost = () => deaf.stdout().split('no network is reachable').length - 1
  await expect.poll(lost).toBe(1)
})

test('a service with a mistyped directory of files is not ready, since the marks of its witness are not there', async () => {
  const first = await startService(deployment.env)
  expect((await settled(first)).status).toBe(200)
  const mistyped = mkdtempSync(path.join(tmpdir(), 'purser-flies-'))
  cleanUps.push(() => rmSync(mistyped, { recursive: true }))
  const second = await startService({ ...deployment.env, FILES_DIR: mistyped })
  const readiness = await fetch(`${second.base}/readyz`)
  expect([readiness.status, await readiness.json()]).toEqual([503, expect.objectContaining({ status: 'not-ready' })])
})

test('a directory of files is created and named in the log if its parent exists, and otherwise stops the start', async () => {
  const place = mkdtempSync(path.join(tmpdir(), 'purser-place-'))
  cleanUps.push(() => rmSync(place, { recursive: true }))
  const mistyped = spawnService({ ...deployment.env, FILES_DIR: path.join(place, 'vloume', 'files') })
  expect([await mistyped.ended, mistyped.stderr()]).toEqual([
    1,
    `Purser did not start: ${place}/vloume/files cannot be created, since ${place}/vloume does not exist: create that directory, or correct FILES_DIR\n`,
  ])
  expect(existsSync(path.join(place, 'vloume'))).toBe(false)
  const FILES_DIR = path.join(place, 'files')
  const created = await startService({ ...deployment.env, FILES_DIR, WITNESS_DIR: deployment.env.FILES_DIR ?? '' })
  expect(lineOf(created.stdout(), 'did not exist and was created')).toContain(FILES_DIR)
  const again = await startService({ ...deployment.env, FILES_DIR, WITNESS_DIR: deployment.env.FILES_DIR ?? '' })
  expect(again.stdout()).not.toContain('did not exist and was created')
})

test('a process with another key-encryption key does not start, says why, and does not disturb the first', async () => {
  const first = await startService(deployment.env)
  const other = randomBytes(32).toString('base64')
  const place = mkdtempSync(path.join(tmpdir(), 'purser-place-'))
  cleanUps.push(() => rmSync(place, { recursive: true }))
  const FILES_DIR = path.join(place, 'files')
  const second = spawnService({ ...deployment.env, KEY_ENCRYPTION_KEY: other, FILES_DIR, WITNESS_DIR: place })
  expect(await second.ended).toBe(1)
  expect(existsSync(FILES_DIR), 'a directory whose creation is in the log of a start that failed').toBe(false)
  expect(second.stderr()).toMatch(
    /^Purser did not start: the key-encryption key \(fingerprint \S+\) is not the one that this database was sealed with \(\S+\)\n$/,
  )
  expect(second.stderr()).not.toContain(other)
  expect((await settled(first)).status).toBe(200)
  expect(await first.end('SIGTERM')).toBe(0)
})

test('a key-encryption key file that is missing, or that others may read, stops the start and is named', async () => {
  const dir = mkdtempSync(path.join(tmpdir(), 'purser-kek-'))
  cleanUps.push(() => rmSync(dir, { recursive: true }))
  const file = path.join(dir, 'kek')
  const env = { ...deployment.env, KEY_ENCRYPTION_KEY: '', KEY_ENCRYPTION_KEY_FILE: file }
  const without = spawnService(env)
  expect([await without.ended, without.stderr()]).toEqual([
    1,
    `Purser did not start: there is no key-encryption key at ${file}\n`,
  ])
  writeFileSync(file, Buffer.from(deployment.env.KEY_ENCRYPTION_KEY ?? '', 'base64'))
  chmodSync(file, 0o644)
  const open = spawnService(env)
  expect([await open.ended, open.stderr()]).toEqual([
    1,
    `Purser did not start: ${file} can be read by other users; run: chmod 600 ${file}\n`,
  ])
  chmodSync(file, 0o600)
  expect(await (await startService(env)).end('SIGTERM')).toBe(0)
})

test('a database that does not answer, and a port that is taken, are each reported in one sentence without a secret', async () => {
  const taken = await takePort()
  const noPort = spawnService({ ...deployment.env, PORT: String(taken) })
  expect(await noPort.ended).toBe(1)
  expect(noPort.stderr()).toMatch(new RegExp(`^Purser did not start: [^\\n]*EADDRINUSE[^\\n]*${taken}[^\\n]*\\n$`))
  for (const host of ['127.0.0.1', 'localhost']) {
    const noDatabase = spawnService({ ...deployment.env, DATABASE_URL: `postgres://purser:hunter2@${host}:1/purser` })
    expect(await noDatabase.ended).toBe(1)
    expect(noDatabase.stderr()).toMatch(/^Purser did not start: [^\n]*ECONNREFUSED[^\n]*\n$/)
    expect(noDatabase.stderr()).not.toContain('hunter2')
  }
})

test('the role api answers requests and settles nothing itself; the role work serves no API and settles what waits', async () => {
  const api = await startService({ ...deployment.env, SETTLE_WAIT_MS: '1000' }, ['--role', 'api'])
  const waiting = await settled(api)
  expect([waiting.status, waiting.body]).toEqual([202, { status: 'settling', txHash: null }])
  expect(await countTransactionsOpen()).toBe(0n)

  // A worker that used the API's port would fail to start.
  const work = await startService({ ...deployment.env, PORT: String(await takePort()) }, ['--role=work'])
  expect(new URL(work.base).port).toBe('0')
  expect(await statusOf(`http://127.0.0.1:${work.metricsPort}`, '/healthz')).toBe(200)
  expect(await statusOf(`http://127.0.0.1:${work.metricsPort}`, '/metrics')).toBe(200)
  await expect.poll(() => countSettling(), { timeout: 60_000 }).toBe(0n)
  // The payment of the second request settles too, now that there is a worker.
  expect((await settled(api)).status).toBeLessThan(300)
  await expect.poll(() => countSettling(), { timeout: 60_000 }).toBe(0n)
  expect(await work.end('SIGTERM')).toBe(0)
  expect(await api.end('SIGTERM')).toBe(0)
})

test('the live environment without a node answers chain-not-configured and records nothing', async () => {
  const { liveKey } = deployment
  const { account, credential } = await aPayer()
  const asWallet = { address: account.address, chain: 'base', supportedTokens: ['USDC'] }
  // Made while there was a node, which the deployment has lost since.
  const before = await startService({ ...deployment.env, RPC_URL_BASE: 'http://127.0.0.1:1' })
  const wallet = await post(before, liveKey, '/wallet-infra/byo-wallets', asWallet)
  expect([wallet.status, await before.end('SIGTERM')]).toEqual([201, 0])
  const service = await startService(deployment.env)
  const refused = await post(service, liveKey, '/wallet-infra/byo-wallets', asWallet)
  expect([refused.status, codeOf(refused)]).toEqual([503, 'chain-not-configured'])
  const requested = { walletId: wallet.body.id, resource: 'https://api.example.com/report', price: '0.01' }
  const challenge = await post(service, liveKey, '/payments/challenge', requested)
  const verified = await post(
    service,
    liveKey,
    '/payments/verify',
    verifyBody(String(wallet.body.id), await credential(challenge)),
  )
  expect([verified.status, codeOf(verified)]).toEqual([503, 'chain-not-configured'])
  expect((await request(service.base, { key: liveKey, method: 'GET', path: '/payments/logs' })).list).toEqual([])
  expect(await service.end('SIGTERM')).toBe(0)
})

function lineOf(stdout: string, text: string): string {
  return stdout.split('\n').find((line) => line.includes(text)) ?? ''
}

async function statusOf(base: string, page: string): Promise<number> {
  return (await fetch(base + page)).status
}

function post({ base }: Service, key: string, path: string, body: unknown): Promise<Answer> {
  return request(base, { key, method: 'POST', path, body })
}

/** The answer to settling a newly verified payment. */
async function settled(service: Service): Promise<Answer> {
  const { credential } = await sign(deployment, 0)
  const { body } = await post(
    service,
    deployment.testKey,
    '/payments/verify',
    verifyBody(deployment.wallet.id, credential),
  )
  return post(service, deployment.testKey, '/payments/settle', {
    paymentId: body.paymentId,
    settlementToken: body.settlementToken,
  })
}

const Count = z.object({ count: z.bigint() })

async function countSettling(): Promise<bigint> {
  return (await database.db.one(Count, sql`select count(*) as count from payments where status = 'settling'`)).count
}

async function countTransactionsOpen(): Promise<bigint> {
  return (await database.db.one(Count, sql`select count(*) as count from chain_transactions where status <> 'final'`))
    .count
}

/** Listens on a port of all addresses until the test is over. */
async function takePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => new Promise((resolve) => server.close(resolve)))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
