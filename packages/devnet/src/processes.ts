import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

const hasProc = existsSync('/proc/self/cwd')

/** The living processes whose working directory is `dir`; undefined where the system does not say (no /proc). */
export function processesIn(dir: string): number[] | undefined {
  if (!hasProc) return undefined
  return allPids().filter((pid) => attempt(() => readlinkSync(`/proc/${pid}/cwd`)) === dir)
}

/** The command line of a living process, joined by spaces; undefined when there is no such process. */
export function commandLine(pid: number): string | undefined {
  if (hasProc) {
    const raw = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    return raw === '' ? undefined : raw?.replaceAll('\0', ' ').trim()
  }
  return attempt(() => execFileSync('ps', ['-p', String(pid), '-o', 'args='], { encoding: 'utf8' }).trim())
}

/** Polls until `done` returns true or the time is over. Returns whether it did. */
export async function waitUntil(done: () => boolean, limitMs: number): Promise<boolean> {
  const deadline = performance.now() + limitMs
  while (!done()) {
    if (performance.now() > deadline) return false
    await delay(20)
  }
  return true
}

/** Sends a signal to a process that may have exited already. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  attempt(() => process.kill(pid, signal))
}

function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
