import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { DevRecord } from '../src/dev-file.ts'
import { commandLine, processesIn } from '../src/processes.ts'

/** `npm start` in a process of its own. */
export interface DevChild {
  readonly child: ChildProcess
  readonly dataDir: string
  stdout(): string
  stderr(): string
  /** Resolves when the text was printed. Rejects when the process ended first. */
  printed(text: string): Promise<void>
  /** Resolves with dev.json when the service is up. */
  ready(): Promise<DevRecord>
  /** Resolves with the exit code, or the signal that killed it. */
  ended: Promise<number | string>
  /** Living processes that it started, or that a process before it started on the same data directory. */
  offspring(): string[]
}

const script = path.join(import.meta.dirname, '..', 'src', 'start.ts')

/** Runs start.ts on any free port. */
export function spawnStart(env: Readonly<Record<string, string>> & { readonly DATA_DIR: string }): DevChild {
  const inherited = {
    PATH: process.env.PATH ?? '',
    HOME: os.homedir(),
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  }
  const child = spawn(process.execPath, [script], {
    env: { ...inherited, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text
    })
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
  })
  const printed = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => output.stdout.includes(text) && resolve()
      child.stdout.on('data', look)
      look()
      ended.then((end) => reject(new Error(`start.ts ended (${end}): ${output.stderr}`)))
    })
  const dataDir = env.DATA_DIR
  return {
    child,
    dataDir,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    printed,
    async ready() {
      await printed('Ctrl-C stops everything')
      return readDev(dataDir)
    },
    ended,
    offspring: () => processesOn(dataDir),
  }
}

function readDev(dataDir: string): DevRecord {
  return JSON.parse(readFileSync(path.join(dataDir, 'dev.json'), 'utf8'))
}

/** Makes a data directory, in a directory that only its owner may enter or in one that others may pass through. */
export function temporaryDataDir(parent: 'closed' | 'open'): string {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'purser-start-'))
  if (parent === 'open') chmodSync(dir, 0o711)
  return path.join(dir, 'data')
}

/**
 * A chain has the data directory in its command line. PostgreSQL has it (or the place that it points to) as its working
 * directory.
 */
function processesOn(dataDir: string): string[] {
  const pointer = path.join(dataDir, 'postgres', 'cluster-location')
  const cluster = existsSync(pointer) ? readFileSync(pointer, 'utf8').trim() : path.join(dataDir, 'postgres', 'cluster')
  const servers = (processesIn(cluster) ?? []).map((pid) => commandLine(pid))
  const lines = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandLine(Number(pid)))
  const chains = lines.filter((line) => line?.includes(`${dataDir}/chains/`))
  return [...servers, ...chains].filter((line) => line !== undefined)
}
