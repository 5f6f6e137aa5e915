import { flushCompileCache } from 'node:module'
import { networks } from '@purser/protocol'
import { bootServer } from './boot.ts'
import { faultsAsText, readConfig } from './config.ts'
import { Problem } from './platform/errors.ts'
import { giveBackStartMemory } from './platform/memory.ts'

const config = readConfig(
  process.env,
  process.argv.slice(2),
  networks.map((network) => network.name),
)

if ('faults' in config) {
  process.stderr.write(faultsAsText(config.faults))
  process.exit(2)
}

// Before the start and not after it: whoever is told to stop as soon as it says that it is up must know how.
const told = Promise.withResolvers<NodeJS.Signals>()
let isTold = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (isTold && !isUp) process.exit(1)
    isTold = true
    told.resolve(signal)
  })
}

let isUp = false
const server = await bootServer(config).catch((error: unknown) => {
  process.stderr.write(`Purser did not start: ${reasonOf(error)}\n`)
  process.exit(1)
})
isUp = true
// Now and not at the end, which a process that is killed never comes to; only where a cache is named (NODE_COMPILE_CACHE).
flushCompileCache()
giveBackStartMemory()

const signal = await told.promise
server.log.info({ signal }, 'stopping')
await server.stop().catch((error: unknown) => {
  server.log.error({ err: error }, 'stopping failed')
  process.exit(1)
})
process.exit(0)

/** A refused connection to a name with several addresses is an error without words around those that have them. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ')
  if (error instanceof Problem && error.cause !== undefined) return `${error.message} ${reasonOf(error.cause)}`
  return error instanceof Error ? error.message : String(error)
}
