import { relayerParts } from '../src/boot.ts'
import { type RelayerParts, relayTimings } from '../src/features/relayer/index.ts'
import type { Deps } from '../src/platform/ctx.ts'

/** What a test works with that passes over the relayer's queues by hand: nothing waits for a back-off or for more to send. */
export function relayPartsOf(deps: Deps): RelayerParts {
  const timings = { ...relayTimings(6_000), backoff: { firstMs: 1, mostMs: 1 }, gatherMs: 0 }
  return { ...relayerParts(deps, timings.leaseMs), timings }
}
