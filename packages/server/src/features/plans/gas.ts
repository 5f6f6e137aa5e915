import type { Network } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { changeGas, listGasTaken, lockGasTaken } from './gas-store.ts'
import { dayOf } from './quotas.ts'

type BudgetCtx = Pick<Ctx, 'tenant' | 'clock' | 'settleNanoUsdPerDayMax' | 'gasPrices'>

/**
 * Reserves this much, in billionths of a US dollar, for each of several, of the operator's budget of the day. Answers for how many of them there
 * was enough. Of a budget that all of an organisation shares, nobody takes the same twice.
 */
export async function reserveForEach(
  ctx: BudgetCtx,
  tx: Tx,
  network: Network,
  { nanoUsd: each, wanted }: { readonly nanoUsd: bigint; readonly wanted: number },
): Promise<number> {
  const budget = { tenant: ctx.tenant, network: network.name, day: dayOf(ctx.clock.now()) }
  const left = ctx.settleNanoUsdPerDayMax - (await lockGasTaken(tx, budget))
  const fitting = each <= 0n ? wanted : left < each ? 0 : Number(least(BigInt(wanted), left / each))
  await changeGas(tx, [{ ...budget, nanoUsd: each * BigInt(fitting) }])
  return fitting
}

/** Whether the budget has that much left at this moment; only `reserveForEach` reserves it. */
export async function hasGasLeft(ctx: BudgetCtx & Pick<Ctx, 'db'>, network: Network, gas: bigint): Promise<boolean> {
  return (await gasLeft(ctx, network)) >= ctx.gasPrices.costOf(network, gas)
}

/** What is left of the day's budget at this moment, in billionths of a US dollar. */
export async function gasLeft(
  ctx: Pick<BudgetCtx, 'tenant' | 'clock' | 'settleNanoUsdPerDayMax'> & Pick<Ctx, 'db'>,
  network: Network,
): Promise<bigint> {
  const taken = await listGasTaken(ctx.db, ctx.tenant, dayOf(ctx.clock.now()))
  return ctx.settleNanoUsdPerDayMax - (taken.get(network.name) ?? 0n)
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}
