import { randomBytes } from 'node:crypto'
import { openDb } from '../../src/platform/db/db.ts'
import { createLog } from '../../src/platform/log.ts'
import type { TestDatabase } from '../database.ts'
import { administer, createDatabase, template, withDatabase } from '../template.ts'
import { type Fault, importMutated, installMutations } from './mutation.ts'
import { settlementFaults } from './settlement-faults.ts'
import { walletFaults } from './wallet-faults.ts'

/**
 * A program: for each fault that its arguments name behind the simulator, runs that over a service with that fault until a seed
 * finds it. `POSTGRES_URL`: a server that has the migrated template. Prints a line of JSON for each, a `Verdict`.
 */
export interface Verdict {
  readonly name: string
  /** The first seed that found it; absent where none did. */
  readonly seed?: number
  readonly reported?: string
  /** Whether it was found by a violation, not by an error that the fault itself throws. */
  readonly isViolation?: boolean
  readonly seconds: number
}

/** A history of one seed, on a stage that all seeds share. */
interface Simulator {
  open(fault: Fault, database: TestDatabase): Promise<{ run(seed: number): Promise<unknown>; stop(): Promise<void> }>
  readonly faults: readonly Fault[]
}

const simulators: Readonly<Record<string, Simulator>> = {
  settlement: {
    faults: settlementFaults,
    async open(fault, database) {
      const { aStage } = (await importMutated('./stage.ts', fault)) as typeof import('./stage.ts')
      const { Simulation } = (await importMutated('./simulation.ts', fault)) as typeof import('./simulation.ts')
      const stage = await aStage(database)
      return { run: (seed) => new Simulation(stage, seed).run(), stop: () => stage.stop() }
    },
  },
  wallets: {
    faults: walletFaults,
    async open(fault, database) {
      const { aWalletStage } = (await importMutated('./wallet-stage.ts', fault)) as typeof import('./wallet-stage.ts')
      const imported = await importMutated('./wallet-simulation.ts', fault)
      const { WalletSimulation } = imported as typeof import('./wallet-simulation.ts')
      const stage = await aWalletStage(database)
      return { run: (seed) => new WalletSimulation(stage, seed).run(), stop: () => stage.stop() }
    },
  },
}

async function aDatabase(serverUrl: string) {
  const name = `test_${randomBytes(8).toString('hex')}`
  await createDatabase(serverUrl, name, template, { plan_cache_mode: 'force_generic_plan' })
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

async function judge(serverUrl: string, simulator: Simulator, fault: Fault): Promise<Verdict> {
  const started = performance.now()
  const { run, stop } = await simulator.open(fault, await aDatabase(serverUrl))
  const verdict = async (): Promise<Omit<Verdict, 'seconds'>> => {
    const seeds = Array.from({ length: fault.within }, (_, index) => index + 1)
    for (const seed of new Set([fault.foundBy ?? 1, ...seeds])) {
      const error: unknown = await run(seed).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      if (!(error instanceof Error)) continue
      const isViolation = error.name === 'Violation'
      return { name: fault.name, seed, reported: `${error.name}: ${error.message}`, isViolation }
    }
    return { name: fault.name }
  }
  try {
    return { ...(await verdict()), seconds: Math.round(performance.now() - started) / 1_000 }
  } finally {
    await stop()
  }
}

installMutations()
const [wanted = '', ...names] = process.argv.slice(2)
const simulator = simulators[wanted]
if (simulator === undefined) throw new Error(`there is no simulator of ${wanted}`)
for (const fault of simulator.faults.filter(({ name }) => names.includes(name)))
  console.log(JSON.stringify(await judge(process.env.POSTGRES_URL ?? '', simulator, fault)))
