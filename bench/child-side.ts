import type { Server } from 'node:http'
import { type Coverage, startCoverage } from './coverage.ts'
import { type Profile, startProfile } from './profile.ts'

/** The report of a child process that is ready: text by name. */
export type Ready = Readonly<Record<string, string>>

/**
 * Runs one side of a comparison as a child process. It notifies the parent when it is ready, profiles itself and
 * counts its functions on request, and ends when the parent requests it or exits, so that no measured process outlives the measurement.
 */
export async function runAsChild(start: () => Promise<{ ready: Ready; stop(): Promise<void> }>): Promise<void> {
  if (process.send === undefined) throw new Error('This is a child of the benchmark; run `npm run bench` instead')
  process.once('disconnect', () => process.exit(1))
  const { ready, stop } = await start()
  let profile: Profile | undefined
  let coverage: Coverage | undefined
  process.on('message', async (message) => {
    if (message === 'profile') profile = await startProfile()
    if (message === 'profile-end') send('profile', (await profile?.end()) ?? {})
    if (message === 'coverage') {
      coverage ??= await startCoverage()
      send('coverage', await coverage.take())
    }
    if (message === 'stop') {
      await stop()
      process.exit(0)
    }
  })
  send('ready', ready)
}

/** Serves on a free local port, as `runAsChild` requires of an HTTP server. */
export async function listen(server: Server): Promise<{ ready: Ready; stop(): Promise<void> }> {
  server.listen(0, '127.0.0.1')
  await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return {
    ready: { port: String(address.port) },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A setting that the parent passed in the environment. */
export function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}

function send(kind: string, values: Readonly<Record<string, string | number>>): void {
  process.send?.({ kind, values })
}
