/** The terminals of a reader who follows a guide. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { root } from './guide-steps.ts'

export interface Printed {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
}

/** A command finds the variables, the functions and the folder that the ones before it left. */
export interface Desk {
  run(commands: string): Promise<Printed>
  /** Runs commands in a terminal of their own, until the reader leaves. */
  leaveRunning(commands: string): void
  /** Waits until a program that was left running has printed this, after what it printed before. */
  mustPrint(pattern: string): Promise<void>
  /** Lets `endPrograms` end a program that was started elsewhere. Returns the program. */
  adopt(child: ChildProcess): ChildProcess
  /** The folder of the next command. */
  place(): string
  endPrograms(): Promise<void>
}

interface Running {
  readonly child: ChildProcess
  /** What it printed since the last text that was waited for. */
  printed: string
}

/** Packages are there already, so `npm` does nothing. A refusal ends a command, as `--fail-with-body` says. */
const functions = ['npx() { "$@"; }', 'npm() { :; }', 'curl() { command curl -sS --fail-with-body "$@"; }']

/** Terminals of a person with this home. The first command runs in `folder`. */
export function createDesk(home: string, folder: string): Desk {
  const running: Running[] = []
  const state = path.join(home, 'state.sh')
  const programs = `${path.dirname(process.execPath)}:${path.join(root, 'node_modules/.bin')}:${process.env.PATH}`
  const env = { PATH: programs, HOME: home, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
  const save = `trap '{ declare -p | grep -v "^declare -[a-zA-Z]*r"; declare -f; printf "cd %q\\n" "$PWD"; } > ${state}' EXIT`
  writeFileSync(state, [...functions, `cd ${folder}`, ''].join('\n'))
  const terminal = (lines: readonly string[]): ChildProcess =>
    spawn('bash', ['-c', [`. ${state} 2> /dev/null`, ...lines].join('\n')], { env, detached: true })
  const adopt = (child: ChildProcess): ChildProcess => {
    const one: Running = { child, printed: '' }
    readAll(child, (_, text) => {
      one.printed += text
    })
    running.push(one)
    return child
  }
  return {
    adopt,
    place: () => /^cd (.+)$/.exec(readFileSync(state, 'utf8').trim().split('\n').at(-1) ?? '')?.[1] ?? folder,
    async run(commands) {
      const child = terminal(['set -eo pipefail', save, commands])
      const printed = { stdout: '', stderr: '' }
      readAll(child, (name, text) => {
        printed[name] += text
      })
      await once(child, 'close')
      return { ...printed, code: child.exitCode }
    },
    leaveRunning(commands) {
      adopt(terminal([commands]))
    },
    async mustPrint(pattern) {
      const isPrinted = (): boolean => running.some((one) => take(one, new RegExp(pattern)))
      const printed = (): string => running.map((one) => one.printed).join('\n')
      await expect.poll(() => (isPrinted() ? 'printed' : printed()), { message: pattern }).toBe('printed')
    },
    async endPrograms() {
      for (const { child } of running.splice(0)) await endGroup(child)
    },
  }
}

function readAll(child: ChildProcess, read: (name: 'stdout' | 'stderr', text: string) => void): void {
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => read(name, text))
}

function take(one: Running, pattern: RegExp): boolean {
  const found = pattern.exec(one.printed)
  if (found !== null) one.printed = one.printed.slice(found.index + found[0].length)
  return found !== null
}

/** Ends a program and those that it started. */
async function endGroup(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, 'exit')
  process.kill(-child.pid, 'SIGTERM')
  await ended
}
