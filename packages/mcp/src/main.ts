#!/usr/bin/env node
import { randomUUID } from 'node:crypto'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CommandError, serviceOf, systemIo } from '@purser/cli'
import { openKeys } from './keys.ts'
import { readOptions, usage } from './options.ts'
import { mcpServer } from './server.ts'
import type { Tool } from './tool.ts'
import { version } from './version.ts'

// Stdout carries the protocol. While serving, messages for people go to stderr.
const options = readOptions(process.argv.slice(2))
if (options.kind === 'not-understood') end(`${options.why}\n\n${usage}`)
else if (options.kind !== 'serve') process.stdout.write(options.kind === 'help' ? usage : `${version()}\n`)
else await serve(options.tools).catch((error: unknown) => end(`${reasonOf(error)}\n`))

async function serve(tools: readonly Tool[]): Promise<void> {
  const { purser, environment, baseUrl } = await serviceOf({ options: {} }, systemIo())
  const keys = openKeys(Date.now, () => `mcp-${randomUUID()}`)
  const server = mcpServer({ purser, environment, keys, tools, version: version() })
  // Only the name: the message may quote what the client sent.
  server.onerror = (error) => process.stderr.write(`purser-mcp: a message failed (${error.name})\n`)
  // When the client disconnects, there is nothing left to serve.
  process.stdin.once('end', () => process.exit())
  process.stdout.once('error', () => process.exit())
  await server.connect(new StdioServerTransport())
  process.stderr.write(`purser-mcp ${version()}: ${tools.length} tools, ${environment} environment of ${baseUrl}\n`)
}

function end(why: string): void {
  process.stderr.write(why)
  process.exitCode = 2
}

function reasonOf(error: unknown): string {
  return error instanceof CommandError ? error.message : `purser-mcp could not start: ${String(error)}`
}
