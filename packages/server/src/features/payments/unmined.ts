import { requireNetwork } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { listUnmined } from './place-store.ts'
import type { Candidate, Ctx } from './ports.ts'
import type { Lacking } from './release-store.ts'
import { recordWithoutPlace } from './settlement-outcome.ts'

/**
 * The result of an attempt to free places or gas: it freed some, or found payments that free too little, or found none. `too-little-for-payer`: they would
 * suffice for a payer without open payments.
 */
export type Freed = 'some' | 'too-little' | 'too-little-for-payer' | 'none'

/** How long a payer's transaction keeps its place while no block includes it, in milliseconds. */
export const unminedMs = 10_000
/** Most payments whose places one payment frees. */
const freedMax = 100

/**
 * Frees the places in the month and the gas of payments whose transactions a majority of the nodes has in no block, ten seconds after they were sent, the
 * oldest first. Nothing else changes for them: a block may still include them.
 */
export async function freeUnmined({ ctx, payment }: Candidate, lacking: Lacking): Promise<Freed> {
  const until = instantOf(ctx.clock.now().getTime() - unminedMs)
  const sent = await listUnmined(ctx.db, ctx.tenant, payment, { lacking, until, most: freedMax })
  const byNetwork = Map.groupBy(sent, ({ network }) => network)
  const unmined = (await Promise.all([...byNetwork].map(([network, rows]) => inNoBlock(ctx, network, rows)))).flat()
  if (unmined.length === 0) return sent.length === 0 ? 'none' : 'too-little'
  await ctx.db.tx((tx) =>
    recordWithoutPlace(
      tx,
      unmined.map(({ id }) => ({ id, reason: null })),
    ),
  )
  return 'some'
}

/** Returns those whose transactions are in no block by a majority of the nodes. */
export async function inNoBlock<T extends { readonly txHash: `0x${string}` }>(
  { chains }: Pick<Ctx, 'chains'>,
  network: string,
  sent: readonly T[],
): Promise<readonly T[]> {
  const mined = await chains.on(requireNetwork(network)).areInBlocks(sent.map(({ txHash }) => txHash))
  return sent.filter((_, index) => mined[index] === 'no')
}
