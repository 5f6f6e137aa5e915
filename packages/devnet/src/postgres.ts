import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { endChild, guardChild } from './child-guard.ts'
import { takeLock } from './lock.ts'
import { preparePostgresBinaries } from './postgres-binaries.ts'
import { ensureCluster, postgresEnvironment } from './postgres-initdb.ts'
import { endOrphan, socketDirPrefix } from './postgres-orphan.ts'
import { chooseRunAs, findPlace, isReachable, type RunAs } from './postgres-place.ts'

export type PostgresOptions = {
  /** Used by one running launcher at a time. Made when missing. */
  dataDir: string
  log?: (line: string) => void
  maxConnections?: number
  /** Settings of the server besides ours, by their names in postgresql.conf. */
  settings?: Readonly<Record<string, string>>
}

export type Postgres = {
  /** For `pg`: the database `purser` on a socket that only this machine's own account can open. */
  url: string
  pid: number
  /** PGDATA, which is not always inside the data directory. */
  cluster: string
  /** Ends sessions and shuts down in order. Resolves when the server has exited. */
  stop(): Promise<void>
  /** The crash, for tests: SIGKILL to the server. Resolves when it is dead. */
  kill(): Promise<void>
}

const socketPathBytesMax = 107
const portName = 5432 // names the socket file; no TCP port is opened

/**
 * Runs native PostgreSQL 18 on a data directory, as root or not, with nothing installed but npm packages. Acknowledged
 * commits survive a crash of either process and a power cut: fsync is on unless `settings` turns it off. A server that a
 * killed launcher left behind is ended first. Two launchers never share a directory: the second one gets an InUseError.
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  mkdirSync(options.dataDir, { recursive: true })
  const dataDir = realpathSync(options.dataDir)
  const lock = takeLock(path.join(dataDir, 'lock'), dataDir)
  try {
    const runAs = chooseRunAs(dataDir)
    const { base, cluster } = findPlace(dataDir, runAs)
    const native = preparePostgresBinaries(base, runAs)
    await endOrphan(cluster)
    await ensureCluster({ native, cluster, runAs })
    return await launch({ ...options, native, cluster, runAs, release: lock.release })
  } catch (error) {
    lock.release()
    throw error
  }
}

type Launch = PostgresOptions & { native: string; cluster: string; runAs: RunAs; release: () => void }

async function launch(options: Launch): Promise<Postgres> {
  const socketDir = makeSocketDir(options.runAs)
  const child = spawnServer(options, socketDir)
  const removeSocketDir = () => rmSync(socketDir, { recursive: true, force: true })
  const letGo = guardChild(child, 'SIGINT', removeSocketDir)
  const cleanUp = () => {
    letGo()
    removeSocketDir()
    options.release()
  }
  child.once('exit', cleanUp)
  await ready(child, options.log ?? (() => {}))
  return {
    url: `postgres://purser@/purser?host=${encodeURIComponent(socketDir)}&port=${portName}`,
    pid: child.pid ?? 0,
    cluster: options.cluster,
    stop: () => endChild(child, ['SIGINT', 'SIGQUIT']),
    kill: () => endChild(child, ['SIGKILL']),
  }
}

function spawnServer(
  { native, cluster, runAs, maxConnections = 100, settings: more = {} }: Launch,
  socketDir: string,
): ChildProcess {
  const own = { listen_addresses: '', unix_socket_directories: socketDir, max_connections: String(maxConnections) }
  const settings = { ...more, ...own }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return spawn(path.join(native, 'bin', 'postgres'), ['-D', cluster, '-p', String(portName), ...args], {
    ...runAs,
    cwd: cluster,
    env: postgresEnvironment(),
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true, // a Ctrl-C in the terminal is for us; the database goes last
  })
}

function ready(child: ChildProcess, log: (line: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const lastLines: string[] = []
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\n').filter(Boolean)) {
        log(line)
        lastLines.push(line)
        if (lastLines.length > 20) lastLines.shift()
      }
      if (/ready to accept (read-only )?connections/.test(text)) resolve()
    })
    child.once('error', reject)
    child.once('close', (code) =>
      reject(new Error(`PostgreSQL ended (${code}) before it was ready: ${lastLines.join('\n')}`)),
    )
  })
}

function makeSocketDir(runAs: RunAs): string {
  const parent = [os.tmpdir(), '/tmp'].find((dir) => existsSync(dir) && isReachable(dir, runAs) && fits(dir))
  if (parent === undefined)
    throw new Error(`No directory for the database's socket: ${os.tmpdir()} is too long or closed`)
  const dir = mkdtempSync(path.join(parent, socketDirPrefix))
  chmodSync(dir, 0o700)
  if (runAs) chownSync(dir, runAs.uid, runAs.gid)
  return dir
}

function fits(dir: string): boolean {
  return (
    Buffer.byteLength(path.join(dir, `${socketDirPrefix}XXXXXX`, `.s.PGSQL.${portName}.lock`)) <= socketPathBytesMax
  )
}
