import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { isRecord } from './parse.ts'

export interface Child {
  readonly pid: number
  /** The values that the child sent when it was ready. */
  ready(name: string): string
  /** Profiles the child while `work` runs; shares of its busy time by place. */
  profileDuring(work: () => Promise<unknown>): Promise<Map<string, number>>
  /** Returns the functions that ran in the child since the last time, as `file name offset`. The first time begins the count and returns none. */
  functionsRun(): Promise<ReadonlySet<string>>
  stop(): Promise<void>
}

const readyMsMax = 60_000
const stopMsMax = 15_000
const living = new Set<ChildProcess>()

process.once('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/** The compile cache of `npm run serve`. The first run on a machine fills it. */
const compileCache = path.join(import.meta.dirname, '..', 'node_modules', '.cache', 'purser-compiled')

/** Starts one of the bench's entry files as a separate process on the same Node, and waits until it is ready. */
export async function startChild(file: string, settings: Readonly<Record<string, string>>): Promise<Child> {
  const child = fork(path.join(import.meta.dirname, file), [], {
    env: { ...process.env, NODE_ENV: 'production', NODE_COMPILE_CACHE: compileCache, ...settings },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  living.add(child)
  child.once('exit', () => living.delete(child))
  const values = await hear(child, 'ready', readyMsMax)
  return {
    pid: child.pid ?? 0,
    ready(name) {
      const value = values[name]
      if (typeof value !== 'string') throw new Error(`${file} did not report its ${name}`)
      return value
    },
    async profileDuring(work) {
      child.send('profile', () => {})
      await work()
      child.send('profile-end', () => {})
      const shares = await hear(child, 'profile', readyMsMax)
      return new Map(Object.entries(shares).map(([place, share]) => [place, Number(share)]))
    },
    async functionsRun() {
      child.send('coverage', () => {})
      return new Set(Object.keys(await hear(child, 'coverage', readyMsMax)))
    },
    stop: () => endChild(child),
  }
}

async function hear(child: ChildProcess, kind: string, msMax: number): Promise<Record<string, unknown>> {
  const signal = AbortSignal.timeout(msMax)
  const values = new Promise<Record<string, unknown>>((resolve, reject) => {
    const listen = (message: unknown) => {
      if (!isRecord(message) || message.kind !== kind || !isRecord(message.values)) return
      child.off('message', listen)
      resolve(message.values)
    }
    child.on('message', listen)
    child.once('exit', (code) => reject(new Error(`a child ended (${code}) before it sent "${kind}"`)))
    signal.addEventListener('abort', () => reject(new Error(`a child did not send "${kind}" within ${msMax} ms`)))
  })
  return values
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  // A child that Ctrl-C has already ended has no channel.
  child.send('stop', () => {})
  await gone
  clearTimeout(timer)
}
