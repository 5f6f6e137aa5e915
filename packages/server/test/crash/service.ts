import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { serviceInOneFile } from './one-file.ts'

export type Env = Readonly<Record<string, string>>

/** `npm run serve` in a separate process. */
export interface Service {
  readonly child: ChildProcess
  readonly base: string
  readonly metricsPort: number | undefined
  readonly settler: `0x${string}`
  stdout(): string
  stderr(): string
  /** Resolves with the exit code, or the signal that killed it. */
  readonly ended: Promise<number | string>
  /** Sends the signal and waits for the end. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string>
}

const script = path.join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** The settings that an operator must make, and limits that do not interfere with a test's load. */
export function serveEnv(databaseUrl: string, own: Env = {}): Env {
  return {
    DATABASE_URL: databaseUrl,
    DATABASE_DURABILITY: 'single',
    BASE_URL: 'http://purser.test',
    DASHBOARD_URL: 'http://dashboard.test',
    KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    FILES_DIR: aFilesDirectory(),
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    LEASE_MS: '1500',
    STOP_DELAY_MS: '0',
    SANDBOX_SCREENING: 'true',
    RATE_LIMIT_PER_SECOND: '1000000',
    RATE_LIMIT_BURST: '1000000',
    ORGANISATION_RATE_LIMIT_PER_SECOND: '1000000',
    ORGANISATION_RATE_LIMIT_BURST: '1000000',
    ADDRESS_RATE_LIMIT_PER_SECOND: '1000000',
    ADDRESS_RATE_LIMIT_BURST: '1000000',
    ...own,
  }
}

const filesDirectories: string[] = []

/** The service creates it when it starts. */
function aFilesDirectory(): string {
  const directory = path.join(tmpdir(), `purser-files-${randomBytes(8).toString('hex')}`)
  filesDirectories.push(directory)
  return directory
}

const living = new Set<ChildProcess>()

/** Ends every service that a failed test left running. */
export async function endEveryService(): Promise<void> {
  const ends = [...living].map((child) => new Promise((resolve) => child.once('close', resolve)))
  for (const child of living) child.kill('SIGKILL')
  await Promise.all(ends)
  for (const directory of filesDirectories.splice(0)) rmSync(directory, { recursive: true, force: true })
}

export interface Started {
  readonly child: ChildProcess
  stdout(): string
  stderr(): string
  readonly ended: Promise<number | string>
  /** Resolves when the service reports that it is up. Rejects when it ended first. */
  up(): Promise<Service>
}

/** Starts main.ts, or the program of another version, with exactly this environment. */
export function spawnService(env: Env, args: readonly string[] = [], program: string = script): Started {
  return follow(run(env, [...youngSpace, program, ...args], ['ignore', 'pipe', 'pipe']))
}

/** Starts main.ts with the memory settings that an operator has, for tests that measure memory. */
export function spawnUntuned(env: Env): Started {
  return follow(run(env, [script], ['ignore', 'pipe', 'pipe']))
}

export type Waiting = Started & { go(): void }

/** Starts a service that has loaded its code and waits at the gate, to save a crash test the loading time. */
export async function spawnWaiting(env: Env, args: readonly string[] = []): Promise<Waiting> {
  const child = run(env, [...youngSpace, await serviceInOneFile(), ...args], ['ignore', 'pipe', 'pipe', 'ipc'])
  return { ...follow(child), go: () => void child.send('go') }
}

/** Starts a service out of one file, for tests of what services do once they run. */
export async function startService(env: Env, args: readonly string[] = []): Promise<Service> {
  const waiting = await spawnWaiting(env, args)
  waiting.go()
  return waiting.up()
}

/** Space for young objects, from the start: loading the code allocates 100 MB, and collecting them costs a fifth of a start. */
const youngSpace = ['--max-semi-space-size=64', '--min-semi-space-size=64']

function run(env: Env, args: readonly string[], stdio: ('ignore' | 'pipe' | 'ipc')[]): ChildProcess {
  return spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio,
  })
}

function follow(child: ChildProcess): Started {
  living.add(child)
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  }
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      living.delete(child)
      resolve(code ?? signal ?? 'unknown')
    })
  })
  const started = { child, ended, stdout: () => printed.stdout, stderr: () => printed.stderr }
  return {
    ...started,
    up: () =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const up = upLine(printed.stdout)
          if (up === undefined) return
          child.stdout?.off('data', look)
          const end = (signal: NodeJS.Signals): Promise<number | string> => {
            child.kill(signal)
            return ended
          }
          resolve({
            ...started,
            base: `http://127.0.0.1:${up.port}`,
            metricsPort: up.metricsPort,
            settler: up.settler,
            end,
          })
        }
        child.stdout?.on('data', look)
        look()
        void ended.then((how) => reject(new Error(`the service ended (${how}) before it was up: ${printed.stderr}`)))
      }),
  }
}

const UpLine = z.object({
  msg: z.literal('purser is up'),
  port: z.number(),
  metricsPort: z.number().optional(),
  settler: z.templateLiteral(['0x', z.string()]),
})

function upLine(stdout: string): z.output<typeof UpLine> | undefined {
  const line = stdout.split('\n').find((text) => text.includes('"purser is up"') && text.endsWith('}'))
  return line === undefined ? undefined : UpLine.parse(JSON.parse(line))
}
