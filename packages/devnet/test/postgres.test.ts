import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterAll, afterEach, expect, test } from 'vitest'
import { InUseError, type Postgres, startPostgres } from '../src/index.ts'
import { processesIn } from '../src/processes.ts'

const isRoot = process.getuid?.() === 0
const cleanUps: (() => Promise<void> | void)[] = []

/** Setting up a cluster takes a second. Tests that need no fresh one share it, one after the other. */
const dataDir = mkdtempSync(path.join(os.tmpdir(), 'purser-test-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('a second start on the same directory finds the same data, and a socket nobody else may enter', async () => {
  const first = await start(dataDir)
  await query(first, "create table noted as select 'still here' as word")
  await first.stop()

  const second = await start(dataDir)
  expect(await query(second, 'select word from noted')).toEqual([{ word: 'still here' }])
  expect(
    await query(second, "select current_setting('listen_addresses') as tcp, current_setting('fsync') as fsync"),
  ).toEqual([{ tcp: '', fsync: 'on' }])
  const socketDir = new URL(second.url.replace('@/', '@host/')).searchParams.get('host') ?? ''
  expect(statSync(socketDir).mode & 0o777).toBe(0o700)
})

test('kill -9 of the launcher under load loses no row that was acknowledged, and the next start takes over', async () => {
  const { acknowledged, cluster } = await writeUntilKilled(dataDir, 200)

  const next = await start(dataDir)
  const [row] = await query(next, 'select count(*)::int as rows, max(number)::int as last from acknowledged')
  expect(row?.last).toBeGreaterThanOrEqual(acknowledged)
  expect(row?.rows).toBe(Number(row?.last) + 1)
  expect(next.cluster).toBe(cluster)
})

test('a database that was killed itself restarts with every acknowledged commit', async () => {
  const first = await start(dataDir)
  await query(first, 'create table kept as select 7 as number')
  await first.kill()

  expect(await query(await start(dataDir), 'select number from kept')).toEqual([{ number: 7 }])
})

test('two launchers cannot run on one directory', async () => {
  const first = await start(dataDir)
  await expect(startPostgres({ dataDir })).rejects.toThrow(InUseError)
  expect(await query(first, 'select 1 as alive')).toEqual([{ alive: 1 }])
})

test('a normal end of the process takes the database with it', async () => {
  const writer = spawnWriter(dataDir)
  const lines = await linesUntil(writer, (line) => line.startsWith('cluster '))
  const cluster = clusterOf(lines)
  writer.kill('SIGTERM')
  await new Promise((resolve) => writer.once('exit', resolve))
  await expect.poll(() => processesIn(cluster) ?? []).toEqual([])
})

test.runIf(isRoot)('root can have its data under a directory that only root may enter', async () => {
  const closed = temporaryDir(0o700)
  const dataDir = path.join(closed, 'data')
  const first = await start(dataDir)
  removeLater(first.cluster)
  expect(first.cluster.startsWith(closed)).toBe(false)
  await query(first, 'create table kept as select 1 as number')
  await first.stop()

  const second = await start(dataDir)
  expect(second.cluster).toBe(first.cluster)
  expect(await query(second, 'select number from kept')).toEqual([{ number: 1 }])
  await second.stop()

  rmSync(dataDir, { recursive: true })
  const third = await start(dataDir)
  removeLater(third.cluster)
  await expect(query(third, 'select number from kept')).rejects.toThrow('does not exist')
})

test.runIf(isRoot)('root gives the cluster to the owner of the data directory, and never runs it as root', async () => {
  const server = await start(dataDir)
  expect(statSync(server.cluster).uid).not.toBe(0)
  expect(statSync(`/proc/${server.pid}`).uid).toBe(statSync(server.cluster).uid)
})

test('a data directory whose cluster is missing is refused, not silently recreated', async () => {
  const orphaned = temporaryDir(0o755)
  writeFileSync(path.join(orphaned, 'cluster-location'), '/nowhere/at/all\n')
  await expect(startPostgres({ dataDir: orphaned })).rejects.toThrow('/nowhere/at/all, which is gone')
})

async function start(dataDir: string): Promise<Postgres> {
  const server = await startPostgres({ dataDir })
  cleanUps.push(() => server.stop())
  return server
}

function temporaryDir(mode: number): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'purser-test-'))
  chmodSync(dir, mode)
  removeLater(dir)
  return dir
}

function removeLater(dir: string): void {
  cleanUps.unshift(() => rmSync(dir, { recursive: true, force: true }))
}

async function query(server: Postgres, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: server.url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

function spawnWriter(dataDir: string): ChildProcess {
  const script = path.join(import.meta.dirname, 'write-rows.ts')
  const child = spawn(process.execPath, [script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  cleanUps.push(() => {
    child.kill('SIGKILL')
  })
  return child
}

async function writeUntilKilled(dataDir: string, rows: number): Promise<{ acknowledged: number; cluster: string }> {
  const writer = spawnWriter(dataDir)
  const lines = await linesUntil(writer, (line) => line === `row ${rows}`)
  const exited = new Promise((resolve) => writer.once('exit', resolve))
  writer.kill('SIGKILL')
  await exited
  const last = lines.filter((line) => line.startsWith('row ')).at(-1)
  return { acknowledged: Number(last?.slice(4)), cluster: clusterOf(lines) }
}

/** Reads until the process ends or the line appears. Lines after it in the same chunk are returned too. */
function linesUntil(child: ChildProcess, enough: (line: string) => boolean): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (chunk) => {
      text += chunk
      const whole = text.split('\n').slice(0, -1)
      if (whole.some(enough)) resolve(whole)
    })
    child.once('exit', (code) => reject(new Error(`the writer ended (${code})`)))
  })
}

function clusterOf(lines: string[]): string {
  return lines.find((line) => line.startsWith('cluster '))?.slice('cluster '.length) ?? ''
}
