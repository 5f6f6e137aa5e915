import type { Network } from '@purser/protocol'

/** How often an open lane is looked at: a twentieth of a block, within bounds that suit instant and slow chains alike. */
export function pollMsOf(network: Network): number {
  return Math.min(1_000, Math.max(50, network.blockTimeMs / 20))
}
