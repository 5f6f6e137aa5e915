#!/usr/bin/env node
import { randomUUID } from 'node:crypto'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { CommandError, serviceAddress, serviceOf, systemIo, versionOf } from '@purser/cli'
import type { HandlerOptions } from './http/callers.ts'
import { endpoint, mcpHttpServer } from './http/http-server.ts'
import { openKeys } from './keys.ts'
import { type Listening, readOptions, usage } from './options.ts'
import { mcpServer } from './server.ts'
import type { Tool } from './tool.ts'

// Stdout carries the protocol. While serving, messages for people go to stderr.
const options = readOptions(process.argv.slice(2))
if (options.kind === 'not-understood') end(`${options.why}\n\n${usage}`)
else if (options.kind !== 'serve')
  process.stdout.write(options.kind === 'help' ? usage : `${versionOf(import.meta.url)}\n`)
else {
  const { tools, http } = options
  const serving = http === undefined ? serveOneClient(tools) : listen(tools, http)
  await serving.catch((error: unknown) => end(`${reasonOf(error)}\n`))
}

async function serveOneClient(tools: readonly Tool[]): Promise<void> {
  const { purser, environment, baseUrl } = await serviceOf({ options: {} }, systemIo())
  const keys = openKeys(Date.now, () => `mcp-${randomUUID()}`)({ name: 'own', shareOwner: 'own' })
  // When the client disconnects, there is nothing left to serve.
  process.stdin.once('end', () => process.exit())
  process.stdout.once('error', () => process.exit())
  serveStdio(() => mcpServer({ purser, environment, keys, tools, version: versionOf(import.meta.url) }), {
    onerror: report,
  })
  process.stderr.write(
    `purser-mcp ${versionOf(import.meta.url)}: ${tools.length} tools, ${environment} environment of ${baseUrl}\n`,
  )
}

async function listen(tools: readonly Tool[], { host, port, hosts, proxies }: Listening): Promise<void> {
  const io = systemIo()
  const baseUrl = await serviceAddress(io)
  const serverOf: HandlerOptions['serverOf'] = (deps, waitingOf) =>
    mcpServer({ ...deps, tools, version: versionOf(import.meta.url) }, waitingOf)
  const server = mcpHttpServer({ baseUrl, serverOf, onError: report }, { hosts, proxies, onCrowded: reportCrowded })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  io.untilStopped().addEventListener('abort', () => {
    server.close()
    server.closeIdleConnections()
    // Running calls get some time to finish.
    setTimeout(() => server.closeAllConnections(), 10_000).unref()
  })
  const address = server.address()
  const at = typeof address === 'object' && address !== null ? address.port : port
  process.stderr.write(
    `purser-mcp ${versionOf(import.meta.url)}: ${tools.length} tools of ${baseUrl} at http://${host.includes(':') ? `[${host}]` : host}:${at}${endpoint}\n`,
  )
}

/** Only the name: the message may quote what the client sent. */
function report(error: Error): void {
  process.stderr.write(`purser-mcp: a message failed (${error.name})\n`)
}

function reportCrowded(): void {
  process.stderr.write(
    'purser-mcp: an address has the most connections that one may have, and further ones are closed. If it is that of a proxy, start with --proxies.\n',
  )
}

function end(why: string): void {
  process.stderr.write(why)
  process.exitCode = 2
}

function reasonOf(error: unknown): string {
  return error instanceof CommandError ? error.message : `purser-mcp could not start: ${String(error)}`
}
