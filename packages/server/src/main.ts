import { networks } from '@purser/protocol'
import { bootServer } from './boot.ts'
import { faultsAsText, readConfig } from './config.ts'

const config = readConfig(
  process.env,
  process.argv.slice(2),
  networks.map((network) => network.name),
)

if ('faults' in config) {
  process.stderr.write(faultsAsText(config.faults))
  process.exit(2)
}

const server = await bootServer(config).catch((error: unknown) => {
  process.stderr.write(`Purser did not start: ${reasonOf(error)}\n`)
  process.exit(1)
})

let stopping = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (stopping) return
    stopping = true
    server.log.info({ signal }, 'stopping')
    server.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        server.log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  })
}

/** A refused connection to a name with several addresses is an error without words around those that have them. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
