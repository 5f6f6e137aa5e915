import { startListening } from './demo-listen.ts'
import { startProvider } from './demo-provider.ts'
import { runAllSteps } from './demo-story.ts'
import { createNarrator } from './narrator.ts'
import { sentenceOf } from './start-settings.ts'
import { stopOnSignals } from './stop-on-signals.ts'
import { createStops } from './stops.ts'
import { startTemporaryDev } from './temporary-dev.ts'

process.stdout.on('error', () => undefined) // a closed terminal must not prevent the cleanup

const { signal } = stopOnSignals(() => print('Stopping …'))
const stops = createStops()
const failure = await runDemo().then(
  () => undefined,
  (error: unknown) => sentenceOf(error),
)
const leftover = await stops.run().then(
  () => undefined,
  (error: unknown) => sentenceOf(error),
)
if (failure !== undefined) end(1, `A step failed: ${failure}`)
if (leftover !== undefined) end(1, `Every step passed, but stopping failed: ${leftover}`)
end(0, 'Every step passed.')

async function runDemo(): Promise<void> {
  print('Purser, from a request without money to a proof of what it bought:')
  const step = createNarrator(print, signal)
  const dev = await step('A fresh Purser starts, with its own database and chains', startFresh)
  const provider = await step('A provider sells routes with the Purser middleware for Express', async () => {
    const value = await startProvider(dev)
    stops.add(value.stop)
    return { value, summary: `GET ${value.forecastUrl}; POST ${value.researchUrl}/open, /fill, /seal` }
  })
  // It starts while the demo continues, and also receives the events from before it is up.
  const listening = await startListening(dev)
  stops.add(listening.stop)
  await runAllSteps({ dev, provider, listening, stopAll: () => stops.run() }, step)
}

async function startFresh() {
  const value = await startTemporaryDev({ signal })
  stops.add(value.stop)
  return { value, summary: `${value.baseUrl}, ${Object.keys(value.chains).join(', ')}` }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function end(exitCode: 0 | 1, text: string): never {
  const stream = exitCode === 0 ? process.stdout : process.stderr
  stream.write(`${text}\n`)
  process.exit(exitCode)
}
