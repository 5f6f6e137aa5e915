import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase } from './database.ts'
import { expectFound } from './sim/find-faults.ts'
import { runSeeds } from './sim/seeds.ts'
import { walletFaults } from './sim/wallet-faults.ts'
import { WalletSimulation } from './sim/wallet-simulation.ts'
import { aWalletStage, type WalletStage } from './sim/wallet-stage.ts'

let stage: WalletStage

beforeAll(async () => {
  stage = await aWalletStage(await freshDatabase())
})
afterAll(async () => {
  await stage?.stop()
})

test('wallets keep their guarantees with hostile partners, lying nodes, reorganizations, restores and processes that die', async () => {
  const idle = await runSeeds({ usual: 10, needed: ['intents', 'moved'] }, (seed) => new WalletSimulation(stage, seed))
  expect(idle).toEqual([])
}, 7_200_000)

test('the simulator finds each planted fault of wallets, within the seeds that it states', async () => {
  await expectFound('wallets', walletFaults)
}, 7_200_000)
