import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { startChain } from '@purser/devnet'
import { afterEach, expect, test } from 'vitest'
import { runAdmin } from '../src/admin/run.ts'
import { endEveryService, type Service } from './crash/service.ts'
import { aDeployment, verifyBody } from './crash/stage.ts'
import { aDeployedPlace, debianPrograms } from './debian-postgres.ts'
import { type Answer, codeOf, request } from './world.ts'

const runbooks = readFileSync(path.resolve(import.meta.dirname, '../../../docs/runbooks.md'), 'utf8')
const stops: (() => unknown)[] = []
afterEach(async () => {
  await endEveryService()
  for (const stop of stops.splice(0).reverse()) await stop()
})

/** The blocks of commands of one section of the runbook. */
function commandsOf(section: string): string[] {
  const [text = ''] = runbooks.split(`\n## ${section}\n`)[1]?.split('\n## ') ?? []
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, commands = '']) => commands)
}

/** A service on a PostgreSQL that runs the files of deploy/postgres, and the places of its backups. */
async function aBackedUpService() {
  const place = aDeployedPlace()
  stops.push(place.remove)
  const server = await place.server('postgres_1')
  await server.start()
  server.run(`psql --username postgres --command "alter system set synchronous_standby_names = ''"`)
  server.run(`psql --username postgres --command 'select pg_reload_conf()'`)
  const backups = path.join(path.dirname(server.dataDir), 'backups')
  server.run('mkdir "$BACKUPS"', { BACKUPS: backups })
  const databaseUrl = place.url(server.port)
  expect(await runAdmin(['migrate'], { DATABASE_URL: databaseUrl })).toMatchObject({ exitCode: 0 })
  const chain = await startChain({ network: 'base-sepolia' })
  stops.push(() => chain.stop())
  const files = path.join(place.place, 'files')
  mkdirSync(files)
  const deployment = await aDeployment({ databaseUrl, chain, env: { FILES_DIR: files } })
  let service: Service = await deployment.start()
  const call = (method: string, at: string, body?: unknown): Promise<Answer> =>
    request(service.base, { key: deployment.testKey, method, path: at, body })
  return {
    server,
    call,
    run: (command: string, more: Readonly<Record<string, string>> = {}) =>
      server.run(command, { BACKUPS: backups, ...more }),
    sell: (credential: string) => call('POST', '/payments/verify', verifyBody(deployment.wallet.id, credential)),
    stop: () => service.end('SIGTERM'),
    async start() {
      service = await deployment.start()
    },
    async ready() {
      const answer = await fetch(`${service.base}/readyz`)
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    },
    admin: (...args: string[]) =>
      runAdmin(['admin', ...args], { ...deployment.env, DATABASE_URL: databaseUrl, FILES_DIR: files }),
  }
}

type BackedUp = Awaited<ReturnType<typeof aBackedUpService>>

/** A file of WAL from before the first base backup. */
const partial = '000000010000000000000000'

const credentials = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `stub_payment_${from + index}`)

async function sellAll({ sell }: BackedUp, ...range: [from: number, to: number]): Promise<void> {
  const sold = await Promise.all(credentials(...range).map(sell))
  expect(sold.map(({ status }) => status)).toEqual(sold.map(() => 200))
}

async function aChild({ call }: BackedUp, master: string): Promise<string> {
  const { status, body } = await call('POST', `/wallet-infra/master-wallets/${master}/child-addresses`, {})
  expect([status, body.type]).toEqual([201, undefined])
  return String(body.address)
}

function countPayments({ run }: BackedUp): string {
  const query = 'select count(*), count(distinct id) from payments'
  return run(`psql --username postgres --dbname purser -Atc '${query}'`).trim()
}

/** Runs the runbook's commands for the WAL once: all that was written before is in the backups when they end. */
function keepWal({ run }: BackedUp, command: string): void {
  const written = run('psql --username postgres -Atc "select pg_walfile_name(pg_current_wal_lsn())"').trim()
  run(command)
  expect(run('ls "$BACKUPS/wal"')).toContain(`${written}.gz`)
  expect(run(`find "$PGDATA/../archive" -name '${written}.gz'`), 'it is off the disk of the server').toBe('')
}

async function restore(of: BackedUp, moment?: string): Promise<void> {
  const backup = of.run('ls -d "$BACKUPS"/base-*').trim()
  const [begin = '', until = '', started = ''] = commandsOf('Restore')
  await of.server.kill()
  rmSync(of.server.dataDir, { recursive: true })
  of.run(begin, { backup })
  if (moment !== undefined) of.run(until, { moment })
  await of.server.start()
  of.run(started)
}

test.skipIf(debianPrograms === undefined)(
  'the runbook’s backup restores every payment once; restored to an earlier moment the service signs nothing before `purser admin restored`',
  { timeout: 240_000 },
  async () => {
    const service = await aBackedUpService()
    const { run, call, sell, ready } = service
    const [base = '', wal = '', clean = ''] = commandsOf('Backup')
    expect([commandsOf('Backup').length, commandsOf('Restore').length]).toEqual([3, 3])
    const made = await call('POST', '/wallet-infra/master-wallets', {
      chain: 'base-sepolia',
      supportedTokens: ['USDC'],
    })
    const master = String(made.body.id)
    await sellAll(service, 0, 10)
    run(base)
    await sellAll(service, 10, 20)
    const first = await aChild(service, master)
    const moment = run('psql --username postgres -Atc "select clock_timestamp()"').trim()
    await sellAll(service, 20, 25)
    const second = await aChild(service, master)
    keepWal(service, wal)
    // A copy that was interrupted is begun again, and one that differs stays.
    run(`echo begun > "$BACKUPS/wal/${partial}.gz.part"; gzip < /dev/null > "$PGDATA/../archive/${partial}.gz"`)
    keepWal(service, wal)
    expect(run(`gunzip < "$BACKUPS/wal/${partial}.gz"; ls "$BACKUPS/wal"`)).not.toContain('.part')
    run(`echo other | gzip > "$PGDATA/../archive/${partial}.gz"`)
    expect(() => run(wal)).toThrow()
    run(`rm "$PGDATA/../archive/${partial}.gz"`)
    run(clean)
    expect(run('ls "$BACKUPS/wal"'), 'WAL that no base backup needs is gone').not.toContain(partial)
    await service.stop()

    // All WAL is there: nothing is lost, and the service goes on by itself.
    await restore(service)
    await service.start()
    await expect.poll(async () => (await ready()).status).toBe(200)
    expect(countPayments(service)).toBe('25|25')
    // A credential that was sold before the restore buys nothing again.
    const again = await Promise.all(credentials(0, 25).map(sell))
    expect(again.map(({ status }) => status)).toEqual(Array(25).fill(409))
    expect([first, second]).not.toContain(await aChild(service, master))
    await service.stop()

    // Restored to an earlier moment: what came after it is lost, and nothing is derived until the operator says so.
    await restore(service, moment)
    await service.start()
    expect(await ready()).toMatchObject({ status: 503, body: { database: 'behind' } })
    expect(countPayments(service)).toBe('20|20')
    const refused = await call('POST', `/wallet-infra/master-wallets/${master}/child-addresses`, {})
    expect([refused.status, codeOf(refused)]).toEqual([503, 'service-unavailable'])
    expect(await service.admin('restored')).toMatchObject({ exitCode: 0 })
    await expect.poll(async () => (await ready()).status).toBe(200)
    expect([first, second]).not.toContain(await aChild(service, master))
    expect(await service.stop()).toBe(0)
  },
)
