import type { Network } from '@purser/protocol'

/** Poll interval of an open lane in milliseconds: a twentieth of the block time, between 50 and 1,000. */
export function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}
