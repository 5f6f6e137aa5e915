import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aHoldStage, aSender, type HoldStage, listed, type Movement, type Wallet } from '../../../../test/hold-stage.ts'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import { continueTraces } from './taint.ts'
import { screeningRecurring } from './tasks.ts'

let stage: HoldStage
beforeAll(async () => {
  stage = await aHoldStage()
})
afterAll(() => stage?.stop())

const hops = 1_200

/** The wallets that pass the money on, in turn, and the first one that has it. */
async function aLongChain(bad: Wallet['address']): Promise<readonly [Wallet, Wallet, Wallet]> {
  const master = await stage.master()
  const wallets = [master, await stage.child(master), await stage.child(master)] as const
  const at = (hop: number): Wallet['address'] => wallets[hop % 3 === 0 ? 0 : hop % 3 === 1 ? 1 : 2].address
  const first = stage.newestBlock() + 1n
  const movements = Array.from({ length: hops + 1 }, (_, hop): Movement => {
    return { from: hop === 0 ? bad : at(hop - 1), to: at(hop), raw: 5n, block: first + BigInt(hop) }
  })
  await stage.book(...movements)
  return wallets
}

/** All work of screening but the continuation of traces, as if the process had died before it. */
async function screenWithoutTracing(): Promise<void> {
  for (const work of screeningRecurring)
    if (work.name !== 'wallets.continue-traces') await work.run(systemCtx(stage.world.server.deps))
}

const step = async (tx: Tx): Promise<boolean> => {
  await lockNetwork(tx, stage.network.name)
  return continueTraces(tx, stage.network.name)
}

const Left = z.object({ walletId: z.string(), block: z.bigint() })
const left = () =>
  stage.db.many(Left, sql`select wallet_id, block_number as block from taint_traces order by wallet_id`)

const most = 10n ** 50n
/** Whether all of the balance is on hold, whatever it is. */
const areOnHold = async (wallets: readonly Wallet[]): Promise<boolean[]> =>
  Promise.all(wallets.map(async (wallet) => (await stage.onHold(wallet)).unscreened > most))

test('a new flag is traced through a long chain of transfers in steps: all that it may reach is on hold until the end, and a crash loses nothing', async () => {
  const bad = aSender()
  const wallets = await aLongChain(bad)
  const [master, , last] = wallets
  await stage.screenWhatIsDue()
  const stranger = await stage.world.organisation()
  expect(await areOnHold(wallets)).toEqual([false, false, false])

  stage.screening.setResult(bad, listed)
  stage.screening.swapList([bad])
  await screenWithoutTracing()
  expect((await left()).length).toBeGreaterThan(0)
  expect(await areOnHold(wallets)).toEqual([true, true, true])
  const ofOther = { tenant: { organisationId: stranger.id, environment: 'test' }, walletId: master.id } as const
  expect(await stage.unscreenedOf(ofOther)).toBe(0n)

  const atStop = await left()
  const stopping = AbortSignal.abort()
  for (const work of screeningRecurring) await work.run({ ...systemCtx(stage.world.server.deps), stopping })
  expect(await left()).toEqual(atStop)

  let steps = 0
  for (let isLeft = true; isLeft; steps++) {
    const before = await left()
    const crashed = stage.db.tx(async (tx) => {
      await step(tx)
      throw new Error('the process died')
    })
    await expect(crashed).rejects.toThrow('the process died')
    expect(await left()).toEqual(before)
    expect(await areOnHold(wallets)).toEqual(wallets.map(() => before.length > 0))
    // What is booked meanwhile is part of the chain too: clean money leaves first.
    if (steps === 1) await stage.booked(aSender(), last, 7n)
    if (steps === 1) await stage.booked(last.address, { id: '', address: aSender() }, 3n)
    await stage.db.tx(step)
    isLeft = (await left()).length > 0
  }
  expect(steps).toBeGreaterThan(1)
  const holder = wallets[hops % 3]
  expect(holder).toBeDefined()
  const frozen = wallets.map((wallet) => (wallet === holder ? 5n : 0n))
  expect(await stage.frozen(...wallets)).toEqual(frozen)
  expect(await areOnHold(wallets)).toEqual([false, false, false])
  const rows = await Promise.all(wallets.map((wallet) => stage.deposits(wallet)))
  expect(rows.map((own) => own.reduce((sum, deposit) => sum + BigInt(deposit.frozen), 0n))).toEqual(frozen)
}, 120_000)
