import { requireNetwork } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { ExhaustedQuota } from './eviction-store.ts'
import { listUnmined } from './monthly-count-store.ts'
import type { Candidate, Ctx } from './ports.ts'
import { recordUncounted } from './settlement-outcome.ts'

/**
 * The result of an attempt to free quota: it freed some, or found payments that free too little, or found none. `too-little-for-payer`: they would
 * suffice for a payer without open payments.
 */
export type FreedQuota = 'some' | 'too-little' | 'too-little-for-payer' | 'none'

/** Milliseconds for which a payer's transaction counts in the month while no block includes it. */
export const unminedMs = 10_000
/** Most payments whose quota is freed for one. */
const freedMax = 100

/**
 * Removes payments from the month's count, and releases their gas, if by a majority of the nodes no block includes their transactions ten seconds after
 * they were sent; the oldest first. Nothing else changes for them: a block may still include them.
 */
export async function freeQuotaOfUnmined({ ctx, payment }: Candidate, exhausted: ExhaustedQuota): Promise<FreedQuota> {
  const until = instantOf(ctx.clock.now().getTime() - unminedMs)
  const sent = await listUnmined(ctx.db, ctx.tenant, payment, { exhausted, until, most: freedMax })
  const byNetwork = Map.groupBy(sent, ({ network }) => network)
  const unmined = (await Promise.all([...byNetwork].map(([network, rows]) => filterUnmined(ctx, network, rows)))).flat()
  if (unmined.length === 0) return sent.length === 0 ? 'none' : 'too-little'
  await ctx.db.tx((tx) =>
    recordUncounted(
      tx,
      unmined.map(({ id }) => ({ id, reason: null })),
    ),
  )
  return 'some'
}

/** Returns those whose transactions are in no block by a majority of the nodes. */
export async function filterUnmined<T extends { readonly txHash: `0x${string}` }>(
  { chains }: Pick<Ctx, 'chains'>,
  network: string,
  sent: readonly T[],
): Promise<readonly T[]> {
  const mined = await chains.on(requireNetwork(network)).areInBlocks(sent.map(({ txHash }) => txHash))
  return sent.filter((_, index) => mined[index] === 'no')
}
