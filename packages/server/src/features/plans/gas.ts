import type { Network } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { changeGas, listGasTaken, lockGasTaken } from './gas-store.ts'
import type { Ctx } from './ports.ts'
import { dayOf } from './quotas.ts'

type BudgetCtx = Pick<Ctx, 'tenant' | 'clock' | 'settleNanoUsdPerDayMax' | 'gasPrices'>

/**
 * Reserves this much gas, in billionths of a US dollar, for each of several items, from the operator's budget of the day. Returns
 * for how many of them it sufficed. Parallel calls never reserve the same amount twice.
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

/** Whether the budget has this much left now; only `reserveForEach` reserves it. */
export async function hasGasLeft(ctx: BudgetCtx & Pick<Ctx, 'db'>, network: Network, gas: bigint): Promise<boolean> {
  return (await gasLeft(ctx, network)) >= ctx.gasPrices.costOf(network, gas)
}

/** Returns what is left of the day's budget now, in billionths of a US dollar. */
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
