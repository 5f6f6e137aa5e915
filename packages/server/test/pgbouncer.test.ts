import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { startChain, tokenBalance } from '@purser/devnet'
import { afterAll, afterEach, expect, test } from 'vitest'
import { runAdmin } from '../src/admin/run.ts'
import { endEveryService } from './crash/service.ts'
import { aDeployment, verifyBody } from './crash/stage.ts'
import { anEmptyDatabase } from './database.ts'
import { aFreePort } from './debian-postgres.ts'
import { openStream } from './stories/vault-stream-reader.ts'
import { listening } from './webhooks/listening.ts'
import { request } from './world.ts'

/** Debian's package. Without it the tests are skipped: npm has none. */
const program = '/usr/sbin/pgbouncer'
const stops: (() => unknown)[] = []

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})
afterAll(endEveryService)

/** A real PgBouncer before the run's PostgreSQL. It refuses start parameters that it does not know, as it does by default. */
async function startPooler(databaseUrl: string, mode: 'session' | 'transaction'): Promise<string> {
  const { searchParams, pathname, username } = new URL(
    databaseUrl.replace('postgres://purser@/', 'postgres://purser@x/'),
  )
  const socket = searchParams.get('host') ?? ''
  const port = await aFreePort()
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-pooler-'))
  const settings = path.join(directory, 'pgbouncer.ini')
  writeFileSync(
    settings,
    `[databases]
* = host=${socket} port=${searchParams.get('port') ?? '5432'} user=${username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = 40
`,
  )
  // PgBouncer does not run as root, and the socket may belong to another user.
  const { uid, gid } = statSync(socket)
  const isRoot = process.getuid?.() === 0
  if (isRoot) for (const file of [directory, settings]) chownSync(file, uid, gid)
  const child: ChildProcess = spawn(program, [settings], { stdio: 'ignore', ...(isRoot && { uid, gid }) })
  const ended = new Promise((resolve) => child.once('close', resolve))
  stops.push(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(directory, { recursive: true })
  })
  return `postgres://purser@127.0.0.1:${port}${pathname}`
}

test.skipIf(!existsSync(program)).each(['session', 'transaction'] as const)(
  'behind PgBouncer in the mode %s the database is migrated and administered, and the service takes and settles payments',
  async (mode) => {
    const database = await anEmptyDatabase()
    stops.push(() => database.drop())
    const url = await startPooler(database.url, mode)
    const env = { DATABASE_URL: url, DATABASE_POOLER: mode }
    await expect
      .poll(async () => (await runAdmin(['migrate'], env)).stdout, { timeout: 60_000 })
      .toMatch(/migrated|up to date/)
    const chain = await startChain({ network: 'base-sepolia' })
    stops.push(() => chain.stop())
    const deployment = await aDeployment({ databaseUrl: url, chain, env: { DATABASE_POOLER: mode } })
    const { start, testKey, wallet, payers, challenge } = deployment
    const service = await start()
    const post = (at: string, body: unknown) =>
      request(service.base, { key: testKey, method: 'POST', path: `/payments/${at}`, body })
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post('verify', verifyBody(wallet.id, `stub_payment_${index}`))),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    const before = await tokenBalance(chain, 'USDC', wallet.address)
    const settled = await Promise.all(
      payers.map(async (payer) => {
        const { body } = await post('verify', verifyBody(wallet.id, await payer.credential(challenge)))
        const { paymentId, settlementToken } = body
        return { paymentId, response: await post('settle', { paymentId, settlementToken }) }
      }),
    )
    expect(settled.map(({ response }) => response.status)).toEqual(payers.map(() => 200))
    expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n * BigInt(payers.length))
    // The outcome is in a final block, and its event is written, by the loops of the service behind the pooler.
    const list = async () =>
      (await request(service.base, { key: testKey, method: 'GET', path: '/events?type=payment.settled' })).list
    await expect.poll(async () => (await list()).length, { timeout: 60_000 }).toBe(payers.length)
    expect((await list()).map(({ payload }) => Object(payload).paymentId).toSorted()).toEqual(
      settled.map(({ paymentId }) => paymentId).toSorted(),
    )
    await readStreams(service.base, testKey)
    expect((await fetch(`${service.base}/readyz`)).status).toBe(200)
    expect(await service.end('SIGTERM')).toBe(0)
  },
  180_000,
)

/** Reads fifty events of a vault as they are emitted, by a stream of the vault and by a listener of all events, in order and each once. */
async function readStreams(base: string, key: string): Promise<void> {
  const post = async (at: string, body: unknown) => (await request(base, { key, method: 'POST', path: at, body })).body
  const vaultId = String((await post('/vaults', {})).id)
  const stream = await openStream(base, vaultId, { key })
  const listener = listening(base, key, { events: 'vault.sealed' })
  await listener.opened
  const names = Array.from({ length: 50 }, (_, at) => `step.${at}`)
  for (const event of names) await post(`/vaults/${vaultId}/emit`, { event, payload: {} })
  expect((await stream.until(names.length)).map(({ type }) => type)).toEqual(names)
  await post(`/vaults/${vaultId}/seal`, {})
  expect((await listener.until(1)).length).toBe(1)
  stream.leave()
  await listener.stop()
}

test('DATABASE_DIRECT_URL leads the commands past the pooler', async () => {
  const database = await anEmptyDatabase()
  stops.push(() => database.drop())
  const env = {
    DATABASE_URL: 'postgres://purser@127.0.0.1:1/none',
    DATABASE_POOLER: 'transaction',
    DATABASE_DIRECT_URL: database.url,
  }
  expect(await runAdmin(['migrate'], env)).toMatchObject({ exitCode: 0 })
  const wrong = await runAdmin(['migrate'], { ...env, DATABASE_DIRECT_URL: 'db.internal' })
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('DATABASE_DIRECT_URL')])
})
