import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { addGasReserved, listGasReserved, lockGasReserved } from './gas-store.ts'
import { dayOf } from './quotas.ts'

/**
 * Takes gas of the operator's budget of the day for what the caller's transaction stores, and answers whether there was enough; of the gas
 * of a day that all of an organisation shares, nobody takes the same twice.
 */
export async function takeGas(
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'settleGasPerDayMax'>,
  tx: Tx,
  network: string,
  gas: bigint,
): Promise<boolean> {
  return (await takeGasOfEach(ctx, tx, network, { gas, wanted: 1 })) === 1
}

/** The same for several that each need this much, which is more than none: answers for how many of them there was enough. */
export async function takeGasOfEach(
  ctx: Pick<Ctx, 'tenant' | 'clock' | 'settleGasPerDayMax'>,
  tx: Tx,
  network: string,
  { gas, wanted }: { readonly gas: bigint; readonly wanted: number },
): Promise<number> {
  const day = dayOf(ctx.clock.now())
  const left = ctx.settleGasPerDayMax - (await lockGasReserved(tx, ctx.tenant, network, day))
  const fitting = left < gas ? 0 : Math.min(wanted, Number(left / gas))
  if (fitting > 0) await addGasReserved(tx, ctx.tenant, network, day, gas * BigInt(fitting))
  return fitting
}

/** Whether there is as much left of the budget at this moment; only `takeGas` holds it. */
export async function hasGasLeft(
  ctx: Pick<Ctx, 'db' | 'tenant' | 'clock' | 'settleGasPerDayMax'>,
  network: string,
  gas: bigint,
): Promise<boolean> {
  const reserved = await listGasReserved(ctx.db, ctx.tenant, dayOf(ctx.clock.now()))
  return (reserved.get(network) ?? 0n) + gas <= ctx.settleGasPerDayMax
}
