import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'

/** The program, as `bin` in the manifest names it. */
export const program: string = path.resolve(import.meta.dirname, '../src/main.ts')

export type Env = Readonly<Record<string, string>>

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs `purser-mcp` to its end, in an environment without settings; its stdin is closed at once. */
export function purserMcp(args: readonly string[], env: Env = {}): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, HOME: '/nowhere', ...env },
  })
  child.stdin.end()
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, ...output }))
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
  readonly structured: Readonly<Record<string, unknown>>
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
    env: {
      PATH: process.env.PATH ?? '',
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
      HOME: '/nowhere',
      ...env,
    },
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (chunk: Buffer) => {
    log += chunk
  })
  return connected(transport, undefined, () => log)
}

/** A revision of the protocol: that of sessions, or that without. */
export type Revision = '2025-11-25' | '2026-07-28'

/** The official client over Streamable HTTP, with this API key. */
export async function anHttpAgent(url: URL, apiKey: string, revision: Revision): Promise<Agent> {
  const transport = new StreamableHTTPClientTransport(url, { authProvider: { token: async () => apiKey } })
  return connected(transport, revision, () => '')
}

async function connected(
  transport: StdioClientTransport | StreamableHTTPClientTransport,
  revision: Revision | undefined,
  log: () => string,
): Promise<Agent> {
  const versionNegotiation = { mode: revision === '2026-07-28' ? { pin: revision } : ('legacy' as const) }
  const client = new Client({ name: 'purser-test', version: '0' }, { versionNegotiation })
  await client.connect(transport)
  onTestFinished(() => client.close())
  if (revision !== undefined) expect(client.getNegotiatedProtocolVersion()).toBe(revision)
  await client.listTools()
  const call: Agent['call'] = async (name, given = {}, signal) => {
    const response = await client.callTool({ name, arguments: given }, signal === undefined ? {} : { signal })
    const { isError = false, content, structuredContent = {} } = CallResult.parse(response)
    return {
      isError,
      structured: structuredContent,
      read: z.record(z.string(), z.unknown()).parse(JSON.parse(content[0]?.text ?? '')),
    }
  }
  return { client, call, log }
}

/** Starts a server at a free port, and stops it after the test. */
export async function listening(server: Server): Promise<{ readonly port: number }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The server does not listen.')
  return { port: address.port }
}
