import { flushCompileCache } from 'node:module'
import { networks } from '@purser/protocol'
import { faultsAsText, readConfig } from './config.ts'
import { Problem } from './platform/errors.ts'
import { releaseMemoryWhenIdle, releaseStartMemory } from './platform/memory.ts'
import { startTracing } from './platform/tracing/tracing.ts'
import { serveUsage } from './serve-usage.ts'

const args = process.argv.slice(2)
const names = networks.map((network) => network.name)
if (args.some((arg) => arg === '--help' || arg === '-h')) {
  process.stdout.write(serveUsage(names))
  process.exit(0)
}

const config = readConfig(process.env, args, names)

if ('faults' in config) {
  process.stderr.write(faultsAsText(config.faults))
  process.exit(2)
}

// Loaded only now: `--help` and the faults of a configuration need a fraction of the code.
const { bootServer } = await import('./boot.ts')

// Installed before the start, so that a signal sent as soon as the process reports that it is up is handled.
const reported = Promise.withResolvers<NodeJS.Signals>()
let isReported = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (isReported && !isUp) process.exit(1)
    isReported = true
    reported.resolve(signal)
  })
}

let isUp = false
const tracing = await startTracing(process.env).catch(exitUnstarted)
const server = await bootServer(config).catch(exitUnstarted)
isUp = true
// Flushed now, since a killed process never reaches its end; only if a cache is configured (NODE_COMPILE_CACHE).
flushCompileCache()
releaseStartMemory()
releaseMemoryWhenIdle()

const signal = await reported.promise
server.log.info({ signal }, 'stopping')
await server.stop().catch((error: unknown) => {
  server.log.error({ err: error }, 'stopping failed')
  process.exit(1)
})
await tracing?.stop()
process.exit(0)

function exitUnstarted(error: unknown): never {
  process.stderr.write(`Purser did not start: ${reasonOf(error)}\n`)
  process.exit(1)
}

/**
 * The message of an error. A refused connection to a name with several addresses has no message itself, so those of its causes are joined.
 */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ')
  if (error instanceof Problem && error.cause !== undefined) return `${error.message} ${reasonOf(error.cause)}`
  return error instanceof Error ? error.message : String(error)
}
