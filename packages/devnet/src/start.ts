import path from 'node:path'
import { banner } from './banner.ts'
import { startDev } from './dev.ts'
import { readStartSettings, sentenceOf } from './start-settings.ts'
import { stopOnSignals } from './stop-on-signals.ts'

process.stdout.on('error', () => undefined) // a closed terminal must not prevent an orderly stop

const settings = readStartSettings(process.env)
if ('fault' in settings) fail(settings.fault)

const { signal } = stopOnSignals(() => print('Stopping … (Ctrl-C again to force)'))
print('Starting Purser …')

const dev = await startDev({ ...settings, signal }).catch((error: unknown) => {
  if (signal.aborted) process.exit(0)
  return fail(`Purser did not start: ${sentenceOf(error)}`)
})
print(banner(dev, { portRequested: settings.port, dataDir: shortest(dev.dataDir) }))

const stop = () =>
  dev.stop().then(
    () => process.exit(0),
    (error: unknown) => fail(`Stopping failed: ${sentenceOf(error)}`),
  )
if (signal.aborted) await stop()
signal.addEventListener('abort', stop)

/** The path from here, or the whole path of a directory outside. */
function shortest(directory: string): string {
  const relative = path.relative('', directory) || '.'
  return relative.startsWith('..') ? directory : relative
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function fail(text: string): never {
  process.stderr.write(`${text}\n`)
  process.exit(1)
}
