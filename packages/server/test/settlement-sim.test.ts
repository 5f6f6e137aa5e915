import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { freshDatabase } from './database.ts'
import { expectFound } from './sim/find-faults.ts'
import { runSeeds } from './sim/seeds.ts'
import { settlementFaults } from './sim/settlement-faults.ts'
import { Simulation } from './sim/simulation.ts'
import { aStage, type Stage } from './sim/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage(await freshDatabase({ plans: 'general' }))
})
afterAll(async () => {
  await stage?.stop()
})

test('settlement keeps its guarantees with hostile payers, lying nodes, reorganizations and processes that die', async () => {
  const idle = await runSeeds({ usual: 30, needed: ['settled', 'served'] }, (seed) => new Simulation(stage, seed))
  expect(idle).toEqual([])
}, 7_200_000)

test('a seed repeats its history, also while the process is busy with something else', async () => {
  const historyOf = async (): Promise<string> => {
    const simulation = new Simulation(stage, 2)
    await simulation.run()
    return simulation.history
  }
  const timers = timersOfService()
  const alone = await historyOf().finally(timers.stop)
  expect(timers.places()).toEqual([])
  // The event loop stands still as it does during a computation, but the tests beside this one have the processor.
  const busy = setInterval(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3), 4)
  const beside = await historyOf().finally(() => clearInterval(busy))
  expect(beside).toBe(alone)
})

/**
 * Notes the code of the service that starts a timer: a history with one follows the machine's clock, so that a loaded machine has another. It notes calls
 * of the global `setTimeout` from outside `platform`. It does not note `node:timers/promises`, `AbortSignal.timeout`, and timers that only code of
 * `platform` starts.
 */
function timersOfService() {
  const places = new Set<string>()
  const start = globalThis.setTimeout
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation((...args) => {
    const callers = new Error('started').stack?.split('\n') ?? []
    const place = callers.find((line) => /at (?!async ).*packages\/server\/src\/(?!platform\/)/.test(line))
    if (place !== undefined) places.add(place.trim())
    return start(...args)
  })
  return { stop: () => spy.mockRestore(), places: () => [...places] }
}

test('the simulator finds each planted fault in settlement, within the seeds that it states', async () => {
  await expectFound('settlement', settlementFaults)
}, 7_200_000)
