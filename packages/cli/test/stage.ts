import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'
import type { Io } from '../src/command.ts'
import { run } from '../src/run.ts'

/** The program, as `bin` in the manifest names it. */
export const program: string = path.resolve(import.meta.dirname, '../src/main.ts')

/** Node without a network: reading files is all that it may do. */
export const offline: readonly string[] = ['--permission', '--allow-fs-read=*']

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** An environment without settings: a path, and the suite's cache of compiled code. */
export function bareEnv(): Readonly<Record<string, string | undefined>> {
  return { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }
}

/** Runs `purser` with these arguments, in an environment without settings. */
export function purser(args: readonly string[], nodeOptions: readonly string[] = []): Promise<Ended> {
  return purserOf({}, args, { nodeOptions })
}

/** Runs `purser` with environment variables and piped input. */
export function purserOf(
  env: Readonly<Record<string, string>>,
  args: readonly string[],
  { nodeOptions = [], stdin = '' }: { readonly nodeOptions?: readonly string[]; readonly stdin?: string } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [...nodeOptions, program, ...args], { env: { ...bareEnv(), ...env } })
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  const out: Buffer[] = []
  const errors: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout: textOf(out), stderr: textOf(errors) }))
  })
}

/** What the program would print and how it would end, without a process for it; without any network and settings unless these are given. */
export async function ran(args: readonly string[], given: Partial<Io> = {}): Promise<Ended> {
  const outside: Io = {
    fetch: () => Promise.reject(new Error('nothing was to be fetched')),
    env: {},
    settingsDirectory: '/nowhere/purser',
    readSecret: () => Promise.reject(new Error('no secret should be requested')),
    untilStopped: () => new AbortController().signal,
    print: () => undefined,
    ...given,
  }
  const { exitCode, stdout, stderr } = await run(args, outside)
  return { code: exitCode, stdout, stderr }
}

/** A fresh directory, into which `put` writes files: a text or bytes as they are, anything else as JSON. It answers the path. */
export function aDirectory(): {
  readonly directory: string
  readonly put: (name: string, content: unknown) => string
} {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-cli-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return {
    directory,
    put: (name, content) => {
      const file = path.join(directory, name)
      const isPlain = typeof content === 'string' || content instanceof Uint8Array
      writeFileSync(file, isPlain ? content : JSON.stringify(content, null, 2))
      return file
    },
  }
}

function textOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString('utf8')
}
