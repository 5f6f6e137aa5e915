import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from './database.ts'
import { type Simulated, Simulation } from './sim/simulation.ts'
import { aStage, type Stage } from './sim/stage.ts'

/** `SIM_SEED` runs one history again, `SIM_SEEDS` so many, from `SIM_FIRST` on; the suite runs some, for a minute at most. */
const { SIM_SEED, SIM_SEEDS, SIM_FIRST } = process.env
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
    `${done.length} seeds in ${seconds.toFixed(0)} s: ${sum((one) => one.payments)} payments, ${sum((one) => one.settled)} settled, ${sum((one) => one.steps)} steps, ${sum((one) => one.deaths)} deaths`,
  )
  expect(sum((one) => one.settled)).toBeGreaterThan(0)
}, 7_200_000)
