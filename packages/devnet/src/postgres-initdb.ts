import { spawn } from 'node:child_process'
import { chownSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { RunAs } from './postgres-place.ts'

type Cluster = { native: string; cluster: string; runAs: RunAs }

const initdbArguments = [
  '--username=purser',
  '--auth=trust',
  '--encoding=UTF8',
  '--locale-provider=builtin',
  '--locale=C.UTF-8',
]

/**
 * Creates the cluster with its database `purser`, unless it exists. It is created beside its place and moved in when it
 * is complete, so that a killed start leaves nothing that looks like a database.
 */
export async function ensureCluster({ native, cluster, runAs }: Cluster): Promise<void> {
  if (existsSync(path.join(cluster, 'PG_VERSION'))) return
  const parent = path.join(cluster, '..')
  const half = `${cluster}.new`
  rmSync(half, { recursive: true, force: true })
  mkdirSync(half, { mode: 0o700 })
  if (runAs) chownSync(half, runAs.uid, runAs.gid)
  await initdb(path.join(native, 'bin', 'initdb'), half, runAs)
  await createDatabase(path.join(native, 'bin', 'postgres'), half, runAs)
  renameSync(half, cluster)
  syncDirectory(parent)
}

async function initdb(program: string, dir: string, runAs: RunAs): Promise<void> {
  const failure = await runLookedUp(program, [...initdbArguments, `--pgdata=${dir}`], { cwd: dir, runAs })
  if (failure !== undefined) throw new Error(`PostgreSQL could not set up its files: ${failure}`)
}

async function createDatabase(program: string, dir: string, runAs: RunAs): Promise<void> {
  const input = 'create database purser\n'
  const failure = await runLookedUp(program, ['--single', '-D', dir, 'postgres'], { cwd: dir, runAs, input })
  if (failure !== undefined) throw new Error(`PostgreSQL could not create its database: ${failure}`)
}

type Run = { cwd: string; runAs: RunAs; input?: string }

/**
 * Runs a program that requires its user to be in /etc/passwd, which the server itself does not. Where the user is
 * missing, as in many containers, a user namespace maps it to the entry of "nobody".
 */
async function runLookedUp(program: string, args: string[], how: Run): Promise<string | undefined> {
  const failure = await run(program, args, how)
  if (!failure?.includes('could not look up effective user ID')) return failure
  const mapped = ['--user', '--map-user=65534', '--map-group=65534', program, ...args]
  if (process.platform === 'linux' && (await run('unshare', mapped, how)) === undefined) return undefined
  const uid = how.runAs?.uid ?? process.getuid?.()
  return `user id ${uid} has no entry in /etc/passwd. Add one, run as another user, or set DATABASE_URL.`
}

/** Runs a program to its end. Returns its stderr if it failed. */
function run(program: string, args: string[], { cwd, runAs, input = '' }: Run): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { ...runAs, cwd, env: postgresEnvironment(), stdio: ['pipe', 'ignore', 'pipe'] })
    let output = ''
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    child.on('error', (error) => resolve(error.message))
    child.on('close', (code) => resolve(code === 0 ? undefined : output.trim() || `exit code ${code}`))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

/** The caller's PG* variables are removed, and messages are in English, because the launcher parses them. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
}

function syncDirectory(dir: string): void {
  const handle = openSync(dir, 'r')
  fsyncSync(handle)
  closeSync(handle)
}
