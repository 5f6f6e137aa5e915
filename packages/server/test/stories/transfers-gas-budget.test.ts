import { type DevChain, startChain } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { dayOf } from '../../src/features/plans/index.ts'
import { planTransfer } from '../../src/features/transfers/plan.ts'
import type { OwnIntent } from '../../src/features/transfers/ports.ts'
import { createRecordTransfer, type RecordOutcome } from '../../src/features/transfers/record.ts'
import { NewTransfer } from '../../src/features/transfers/schema.ts'
import { gasOfGasless } from '../../src/features/wallets/index.ts'
import type { Ctx } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { isProblem } from '../../src/platform/errors.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { aFamily } from '../sweep-stage.ts'
import { aWorld, type Org, type World } from '../world.ts'

let base: DevChain
let world: World

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base], config: { role: 'api' } })
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

/** An organisation's context, and the number of transactions that it has begun. */
function counted({ id: organisationId }: Org): { readonly ctx: Ctx; readonly begun: () => number } {
  const { db, ...deps } = world.server.deps
  let count = 0
  const counting: Ctx['db'] = {
    ...db,
    tx(work) {
      count += 1
      return db.tx(work)
    },
  }
  const own = { ...deps, db: counting, recordTransfer: createRecordTransfer(counting) }
  const ctx = forTenant(systemCtx(own), { organisationId, environment: 'test' })
  return { ctx, begun: () => count }
}

/** Transfers of children without gas, planned while the day's budget had gas. */
async function planned(ctx: Ctx, org: Org, count: number): Promise<readonly OwnIntent[]> {
  const { children } = await aFamily(world, org, base, { count })
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '1' }
  return Promise.all(
    children.map(async ({ id: fromWalletId }) => {
      const toAddress = privateKeyToAddress(generatePrivateKey())
      const request = NewTransfer.parse({ fromWalletId, ...usual, toAddress })
      const plan = await planTransfer(ctx, request)
      expect(plan.steps, 'the settler is to send it').toEqual([])
      return {
        ctx,
        request,
        plan,
        purpose: 'transfer',
        operation: 'transfer',
        reportedState: 'pending',
        action: 'transfers.create',
      }
    }),
  )
}

/** Uses up the day's budget except for this many authorizations. */
async function useGas({ tenant, clock, settleNanoUsdPerDayMax }: Ctx, left: bigint): Promise<void> {
  await world.database.db.run(sql`
    insert into gas_budgets (organisation_id, environment, network, day, nano_usd) values
    (${tenant.organisationId}, 'test', 'base-sepolia', ${dayOf(clock.now())}, ${settleNanoUsdPerDayMax - left * gasOfGasless})`)
}

function recordAll(intents: readonly OwnIntent[]): Promise<RecordOutcome[]> {
  return Promise.all(intents.map((intent) => intent.ctx.recordTransfer(intent).catch((error: Error) => error)))
}

async function stored(org: Org): Promise<string[]> {
  const statement = sql`
    select t.id from transfers t join transfer_authorisations a on a.transfer_id = t.id where organisation_id = ${org.id} order by t.id`
  return (await world.database.db.many(z.object({ id: z.string() }), statement)).map(({ id }) => id)
}

test('transfers beyond the daily gas budget are excluded from their batch in one step, and the others are made', async () => {
  const org = await world.organisation()
  const { ctx, begun } = counted(org)
  const intents = await planned(ctx, org, 6)
  await useGas(ctx, 2n)
  const before = begun()
  const outcomes = await recordAll(intents)
  const made = outcomes.flatMap((outcome) => (outcome instanceof Error ? [] : [outcome]))
  expect(outcomes.slice(0, 2), 'in the order of arrival').toEqual(made)
  expect(outcomes.slice(2).map((outcome) => isProblem(outcome, 'insufficient-balance'))).toEqual([
    true,
    true,
    true,
    true,
  ])
  expect(await stored(org)).toEqual(made.map(({ transferId }) => transferId).toSorted())
  expect(begun() - before, 'once with all of them, and once with those that are made').toBe(2)
})

test('with the daily gas budget used up, a batch of transfers that need it is one transaction', async () => {
  const org = await world.organisation()
  const { ctx, begun } = counted(org)
  const intents = await planned(ctx, org, 6)
  await useGas(ctx, 0n)
  const before = begun()
  const outcomes = await recordAll(intents)
  expect(outcomes.map((outcome) => isProblem(outcome, 'insufficient-balance'))).toEqual(intents.map(() => true))
  expect([await stored(org), begun() - before]).toEqual([[], 1])
})
