import { relayerParts } from '../src/boot.ts'
import { type RelayerParts, relayTimings } from '../src/features/relayer/index.ts'
import type { Deps } from '../src/platform/ctx.ts'

/** Parts for a test that runs the relayer's passes itself: no back-off, and no wait for a fuller batch. */
export function relayPartsOf(deps: Deps): RelayerParts {
  const timings = { ...relayTimings(6_000), backoff: { firstMs: 1, mostMs: 1 }, batchMs: 0 }
  return { ...relayerParts(deps, timings.leaseMs), timings }
}
