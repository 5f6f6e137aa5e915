import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { onTestFinished } from 'vitest'
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

/** Runs `purser` with these arguments, in an environment that has nothing in it but a path. */
export function purser(args: readonly string[], nodeOptions: readonly string[] = []): Promise<Ended> {
  const child = spawn(process.execPath, [...nodeOptions, program, ...args], { env: { PATH: process.env.PATH } })
  const out: Buffer[] = []
  const errors: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout: textOf(out), stderr: textOf(errors) }))
  })
}

/** What the program would print and how it would end, without a process for it and without any network. */
export async function ran(args: readonly string[]): Promise<Ended> {
  const fetch = () => Promise.reject(new Error('nothing was to be fetched'))
  const { exitCode, stdout, stderr } = await run(args, { fetch })
  return { code: exitCode, stdout, stderr }
}

/** A fresh directory, into which `put` writes files: a text or bytes as they are, anything else as JSON. It answers the path. */
export function aDirectory(): { readonly put: (name: string, content: unknown) => string } {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-cli-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return {
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
