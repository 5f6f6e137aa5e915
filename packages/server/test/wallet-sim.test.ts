import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../src/platform/db/db.ts'
import { freshDatabase } from './database.ts'
import { expectFound } from './sim/find-faults.ts'
import { runSeeds } from './sim/seeds.ts'
import { walletFaults } from './sim/wallet-faults.ts'
import { WalletSimulation } from './sim/wallet-simulation.ts'
import { aWalletStage, type WalletStage } from './sim/wallet-stage.ts'

let stage: WalletStage
/** In its history an older database is restored, and final blocks are undone. */
const restoredSeed = 53

async function stateBefore({ states }: WalletStage): Promise<string> {
  await states.putBack('beginning')
  return states.digest()
}

async function historyOf(on: WalletStage, seed: number): Promise<string> {
  const simulation = new WalletSimulation(on, seed)
  await simulation.run()
  return simulation.history
}

beforeAll(async () => {
  stage = await aWalletStage(await freshDatabase({ plans: 'general' }))
})
afterAll(async () => {
  await stage?.stop()
})

test('wallets keep their guarantees with hostile partners, lying nodes, reorganizations, restores and processes that die', async () => {
  const idle = await runSeeds({ usual: 10, needed: ['intents', 'moved'] }, (seed) => new WalletSimulation(stage, seed))
  expect(idle).toEqual([])
}, 7_200_000)

test('a seed repeats its history after others, since each history begins with the same rows and sequences', async () => {
  const alone = await aWalletStage(await freshDatabase({ plans: 'general' }))
  try {
    const beginning = await stateBefore(alone)
    const first = await historyOf(alone, 7)
    await historyOf(alone, restoredSeed)
    await alone.db.run(sql`select setval('webhook_secrets_sequence_seq', 41)`)
    expect(await alone.states.digest()).not.toBe(beginning)
    expect(await stateBefore(alone)).toBe(beginning)
    expect(await historyOf(alone, 7)).toBe(first)
  } finally {
    await alone.stop()
  }
})

test('the simulator finds each planted fault of wallets, within the seeds that it states', async () => {
  await expectFound('wallets', walletFaults)
}, 7_200_000)
