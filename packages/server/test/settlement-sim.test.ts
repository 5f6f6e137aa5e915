import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { freshDatabase } from './database.ts'
import type { Verdict } from './sim/faulty.ts'
import { settlementFaults } from './sim/settlement-faults.ts'
import { type Simulated, Simulation } from './sim/simulation.ts'
import { aStage, type Stage } from './sim/stage.ts'

/**
 * `SIM_SEED` runs one history again, `SIM_SEEDS` so many, from `SIM_FIRST` on; the suite runs some, for a minute at most. `SIM_FAULTS=all` looks
 * for every fault, and the suite for those that a few seeds find.
 */
const { SIM_SEED, SIM_SEEDS, SIM_FIRST, SIM_FAULTS } = process.env
const only = SIM_SEED === undefined ? undefined : Number(SIM_SEED)
const first = only ?? Number(SIM_FIRST ?? 1)
const count = only === undefined ? Number(SIM_SEEDS ?? 150) : 1
const msMax = SIM_SEEDS === undefined ? 60_000 : Number.POSITIVE_INFINITY

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase())
})
afterAll(async () => {
  await stage?.stop()
})

test('settlement keeps its promises among hostile payers, lying nodes, reorganizations and processes that die', async () => {
  const started = performance.now()
  const done: Simulated[] = []
  for (let seed = first; seed < first + count && performance.now() - started < msMax; seed += 1)
    done.push(
      await new Simulation(stage, seed).run().catch((error: unknown) => {
        throw new Error(
          `seed ${seed} (SIM_SEED=${seed} repeats it): ${error instanceof Error ? error.message : error}`,
          { cause: error },
        )
      }),
    )
  const sum = (of: (one: Simulated) => number) => done.reduce((total, one) => total + of(one), 0)
  const seconds = (performance.now() - started) / 1_000
  console.log(
    `${done.length} seeds in ${seconds.toFixed(0)} s: ${sum((one) => one.payments)} payments, ${sum((one) => one.settled)} settled, ${sum((one) => one.served)} served, ${sum((one) => one.steps)} steps, ${sum((one) => one.deaths)} deaths`,
  )
  expect(sum((one) => one.settled)).toBeGreaterThan(0)
  expect(sum((one) => one.served)).toBeGreaterThan(0)
}, 7_200_000)

test('the simulator finds each fault that somebody plants in settlement, within the seeds that it states', async () => {
  const wanted = settlementFaults.filter(({ isQuick }) => SIM_FAULTS === 'all' || isQuick)
  const verdicts = await lookFor(wanted.map(({ name }) => name))
  const missed = verdicts.filter(({ isViolation }) => isViolation !== true)
  expect(missed).toEqual([])
  expect(verdicts.map(({ name }) => name)).toEqual(wanted.map(({ name }) => name))
}, 7_200_000)

/** Runs the simulator over the faulty services, in a process of its own: Node loads their sources, as they are but for the fault. */
async function lookFor(names: readonly string[]): Promise<readonly Verdict[]> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'sim/faulty.ts'), ...names], {
    env: { ...process.env, POSTGRES_URL: inject('postgresUrl') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const verdicts: Verdict[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const verdict: Verdict = JSON.parse(line)
    verdicts.push(verdict)
    if (SIM_FAULTS === 'all') console.log(line)
  }
  return verdicts
}
