import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { onTestFinished } from 'vitest'
import { z } from 'zod'

/** The program, as `bin` in the manifest names it. */
export const program: string = path.resolve(import.meta.dirname, '../src/main.ts')

export type Env = Readonly<Record<string, string>>

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `purser-mcp` to its end, in an environment that has nothing in it but a path; its stdin is closed at once. */
export function purserMcp(args: readonly string[], env: Env = {}): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, HOME: '/nowhere', ...env },
  })
  child.stdin.end()
  const said = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.stdout += chunk))
  child.stderr.on('data', (chunk: Buffer) => (said.stderr += chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, ...said }))
  })
}

export function aDirectory(): string {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-mcp-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

const CallResult = z.object({
  isError: z.boolean().optional(),
  content: z.array(z.object({ type: z.literal('text'), text: z.string() })).min(1),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
})

interface Called {
  readonly isError: boolean
  /** What a program reads of a success. */
  readonly said: Readonly<Record<string, unknown>>
  /** What a model reads, parsed. */
  readonly read: Readonly<Record<string, unknown>>
}

export interface Agent {
  readonly client: Client
  readonly call: (name: string, args?: Record<string, unknown>, signal?: AbortSignal) => Promise<Called>
  /** What the program wrote to stderr. */
  readonly log: () => string
}

/** Options with which every tool is offered. */
const everything = ['--allow-changes', '--allow-money']

/** The official client over stdio. */
export async function anAgent(env: Env, args: readonly string[] = everything): Promise<Agent> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [program, ...args],
    env: { PATH: process.env.PATH ?? '', HOME: '/nowhere', ...env },
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    log += chunk
  })
  const client = new Client({ name: 'purser-test', version: '0' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  await client.listTools()
  const call: Agent['call'] = async (name, given = {}, signal) => {
    const answer = await client.callTool({ name, arguments: given }, undefined, signal === undefined ? {} : { signal })
    const { isError = false, content, structuredContent = {} } = CallResult.parse(answer)
    return {
      isError,
      said: structuredContent,
      read: z.record(z.string(), z.unknown()).parse(JSON.parse(content[0]?.text ?? '')),
    }
  }
  return { client, call, log: () => log }
}
