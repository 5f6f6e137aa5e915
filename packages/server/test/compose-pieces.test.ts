import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { startChain } from '@purser/devnet'
import { afterEach, expect, test } from 'vitest'
import { runAdmin } from '../src/admin/run.ts'
import { endEveryService } from './crash/service.ts'
import { aDeployment, verifyBody } from './crash/stage.ts'
import { aDeployedPlace, aFreePort, type DeployedServer, debianPrograms } from './debian-postgres.ts'
import { startS3 } from './files/s3-server.ts'
import { request } from './world.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const pooler = '/usr/sbin/pgbouncer'
const runbooks = readFileSync(path.join(root, 'docs/runbooks.md'), 'utf8')
const stops: (() => unknown)[] = []
afterEach(async () => {
  await endEveryService()
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** PgBouncer with deploy/pgbouncer/pgbouncer.ini, whose addresses and paths are those of this machine. */
async function startPooler(place: ReturnType<typeof aDeployedPlace>, primary: DeployedServer) {
  const port = await aFreePort()
  const file = path.join(place.place, 'pgbouncer.ini')
  const follow = ({ port: primaryPort }: DeployedServer): void => {
    const shipped = readFileSync(path.join(root, 'deploy/pgbouncer/pgbouncer.ini'), 'utf8')
    const own = shipped
      .replace('host=postgres-1 port=5432', `host=127.0.0.1 port=${primaryPort}`)
      .replace('listen_addr = *', 'listen_addr = 127.0.0.1')
      .replace('listen_port = 6432', `listen_port = ${port}`)
      .replace('/run/secrets', place.secrets)
    writeFileSync(file, own)
    if (place.account.uid !== undefined) chownSync(file, place.account.uid, place.account.gid)
  }
  follow(primary)
  const child: ChildProcess = spawn(pooler, [file], { ...place.account, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('close', resolve))
  stops.push(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    url: place.url(port),
    moveTo(server: DeployedServer) {
      follow(server)
      child.kill('SIGHUP')
    },
  }
}

/** SQL as the runbook gives it to psql: the test fails if the runbook says something else. */
function byTheRunbook(server: DeployedServer, ...statements: string[]): void {
  for (const statement of statements) {
    expect(runbooks).toContain(statement)
    server.run('psql --username postgres --command "$SQL"', { SQL: statement })
  }
}

const alone = "alter system set synchronous_standby_names = ''"
const together = "alter system set synchronous_standby_names = 'ANY 1 (postgres_1, postgres_2)'"
const reload = 'select pg_reload_conf()'

test.skipIf(debianPrograms === undefined || !existsSync(pooler))(
  'the files of the compose file run: a standby confirms each commit behind the pooler, is lost, is promoted and gets a new standby',
  { timeout: 240_000 },
  async () => {
    const place = aDeployedPlace()
    stops.push(place.remove)
    const [first, second] = [await place.server('postgres_1'), await place.server('postgres_2')]
    await first.start()
    await second.start(first)
    const { url, moveTo } = await startPooler(place, first)
    const direct = place.url(first.port, second.port)
    const env = { DATABASE_DIRECT_URL: direct, DATABASE_POOLER: 'transaction', DATABASE_DURABILITY: 'synchronous' }
    expect(await runAdmin(['migrate'], { ...env, DATABASE_URL: url })).toMatchObject({ exitCode: 0 })
    const chain = await startChain({ network: 'base-sepolia' })
    stops.push(() => chain.stop())
    const { start, testKey, wallet } = await aDeployment({ databaseUrl: url, chain, env })
    const service = await start()
    const ready = async () => {
      const response = await fetch(`${service.base}/readyz`)
      return { status: response.status, durability: (await response.json()).durability }
    }
    let sold = 0
    const sell = () =>
      request(service.base, {
        ...{ key: testKey, method: 'POST', path: '/payments/verify' },
        body: verifyBody(wallet.id, `stub_payment_${sold++}`),
      })
    const payments = (server: DeployedServer) =>
      Number(server.run("psql --username postgres --dbname purser -Atc 'select count(*) from payments'"))

    expect((await Promise.all(Array.from({ length: 20 }, sell))).map(({ status }) => status)).toEqual(
      Array(20).fill(200),
    )
    expect(await ready()).toMatchObject({ status: 200, durability: { standby: 'confirmed' } })

    // The standby is lost: commits wait, until the operator lets one server go on alone.
    await second.kill()
    let isAnswered = false
    const waiting = sell().finally(() => {
      isAnswered = true
    })
    await expect.poll(async () => (await ready()).durability.standby, { timeout: 20_000 }).toBe('standby-missing')
    expect(isAnswered).toBe(false)
    byTheRunbook(first, alone, reload)
    expect((await waiting).status).toBe(200)
    await second.start()
    byTheRunbook(first, together, reload)
    await expect.poll(async () => (await ready()).durability.standby, { timeout: 20_000 }).toBe('confirmed')

    // The primary is lost.
    await first.kill()
    byTheRunbook(second, alone, reload, 'select pg_promote()')
    moveTo(second)
    await expect.poll(async () => (await ready()).status, { timeout: 30_000 }).toBe(200)
    expect(payments(second)).toBe(21)
    expect((await sell()).status).toBe(200)

    // The old primary comes back as an empty server, which becomes the standby.
    first.run('rm -r "$PGDATA"')
    await first.start(second)
    byTheRunbook(second, together, reload)
    await expect.poll(async () => (await ready()).durability.standby, { timeout: 20_000 }).toBe('confirmed')
    expect((await sell()).status).toBe(200)
    await expect.poll(() => payments(first)).toBe(23)
    expect(await service.end('SIGTERM')).toBe(0)
  },
)

test('the bucket is created once', async () => {
  const { settings, stop } = await startS3()
  stops.push(stop)
  const create = (endpoint = settings.endpoint) =>
    execFileSync(process.execPath, [path.join(root, 'deploy/create-bucket.mjs')], {
      ...{ encoding: 'utf8', stdio: 'pipe' },
      env: {
        ...{ FILES_S3_ENDPOINT: endpoint, FILES_S3_BUCKET: 'purser', FILES_S3_REGION: settings.region },
        ...{ FILES_S3_ACCESS_KEY_ID: settings.accessKeyId, FILES_S3_SECRET_ACCESS_KEY: settings.secretAccessKey },
      },
    })
  expect([create(), create()]).toEqual(['the bucket purser was created\n', 'the bucket purser exists\n'])
  expect(() => create('http://127.0.0.1:1')).toThrow()
})
