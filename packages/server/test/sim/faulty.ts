import { randomBytes } from 'node:crypto'
import { openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import { administer, template, withDatabase } from '../template.ts'
import { importMutated, installMutations } from './mutation.ts'
import { type Fault, settlementFaults } from './settlement-faults.ts'

/**
 * A program: runs the simulator over a service with a fault in it, until a seed finds the fault, for each of the faults that its arguments name.
 * `POSTGRES_URL`: a server that has the migrated template. Prints a line of JSON for each, a `Verdict`.
 */
export interface Verdict {
  readonly name: string
  /** The first seed that found it; left out where none did. */
  readonly seed?: number
  readonly said?: string
  /** It was found by what it breaks, and not by an error of the fault's own. */
  readonly isViolation?: boolean
  readonly seconds: number
}

type Staging = typeof import('./stage.ts')
type Simulating = typeof import('./simulation.ts')

async function aDatabase(serverUrl: string) {
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

async function judge(serverUrl: string, fault: Fault): Promise<Verdict> {
  const started = performance.now()
  const { aStage } = (await importMutated('./stage.ts', fault)) as Staging
  const { Simulation } = (await importMutated('./simulation.ts', fault)) as Simulating
  const stage = await aStage(await aDatabase(serverUrl))
  const verdict = async (): Promise<Omit<Verdict, 'seconds'>> => {
    for (let seed = 1; seed <= fault.within; seed += 1) {
      const error: unknown = await new Simulation(stage, seed).run().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (!(error instanceof Error)) continue
      const isViolation = error.name === 'Violation'
      return { name: fault.name, seed, said: `${error.name}: ${error.message}`, isViolation }
    }
    return { name: fault.name }
  }
  try {
    return { ...(await verdict()), seconds: Math.round(performance.now() - started) / 1_000 }
  } finally {
    await stage.stop()
  }
}

installMutations()
const names = new Set(process.argv.slice(2))
for (const fault of settlementFaults.filter(({ name }) => names.has(name)))
  console.log(JSON.stringify(await judge(process.env.POSTGRES_URL ?? '', fault)))
