import { randomBytes } from 'node:crypto'
import { openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { administer, template, withDatabase } from '../template.ts'
import { importMutated, installMutations } from './mutation.ts'
import { type Fault, settlementFaults } from './settlement-faults.ts'

/**
 * A program: runs the simulator over the service with each fault in it, until a seed finds it. `POSTGRES_URL`: a server with the migrated
 * template. Arguments: the names of the faults; none for all. Prints one line of JSON for each.
 */
const serverUrl = process.env.POSTGRES_URL ?? ''
const names = process.argv.slice(2)

type Stage = typeof import('./stage.ts')
type Simulating = typeof import('./simulation.ts')

async function aDatabase() {
  const name = `test_${randomBytes(8).toString('hex')}`
  await administer(serverUrl, `create database ${name} template ${template}`)
  const url = withDatabase(serverUrl, name)
  const db = openDb({ url, connectionsMax: 2, log: createLog({ level: 'silent' }) })
  return {
    db,
    url,
    async drop() {
      await db.close()
      await administer(serverUrl, `drop database if exists ${name} with (force)`)
    },
  }
}

async function run(fault: Fault): Promise<Record<string, unknown>> {
  const { aStage } = (await importMutated('./stage.ts', fault)) as Stage
  const { Simulation } = (await importMutated('./simulation.ts', fault)) as Simulating
  const stage = await aStage(await aDatabase())
  const started = performance.now()
  const seconds = () => Math.round((performance.now() - started) / 100) / 10
  try {
    for (let seed = 1; seed <= fault.within; seed += 1) {
      const error: unknown = await new Simulation(stage, seed).run().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (error === undefined) continue
      const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
      return {
        name: fault.name,
        seed,
        said,
        isViolation: error instanceof Error && error.name === 'Violation',
        seconds: seconds(),
      }
    }
    return { name: fault.name, seconds: seconds() }
  } finally {
    await stage.stop()
  }
}

installMutations()
for (const fault of settlementFaults.filter(({ name }) => names.length === 0 || names.includes(name)))
  console.log(JSON.stringify(await run(fault)))
