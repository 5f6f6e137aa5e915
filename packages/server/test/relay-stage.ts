import { paymentRelays } from '../src/features/payments/settlement-outcome.ts'
import { relayerParts as partsFor, type RelayerParts, relayTimings } from '../src/features/relayer/index.ts'
import { gaslessTransfers } from '../src/features/transfers/gasless/relay.ts'
import { watchedPayments } from '../src/features/transfers/paying/pay.ts'
import { sweepRelays } from '../src/features/wallets/sweep/relay.ts'
import type { Deps } from '../src/modules.ts'

/** Parts of a relayer with the purposes that the service has. */
export function relayerParts(deps: Deps, leaseMs: number): RelayerParts {
  const purposes = [paymentRelays(deps), sweepRelays(deps), gaslessTransfers(deps), watchedPayments(deps)]
  return partsFor(deps, purposes, leaseMs)
}

/** Parts for a test that runs the relayer's passes itself: no back-off, and no wait for a fuller batch. */
export function relayPartsOf(deps: Deps): RelayerParts {
  const timings = { ...relayTimings(6_000), backoff: { firstMs: 1, mostMs: 1 }, batchMs: 0 }
  return { ...relayerParts(deps, timings.leaseMs), timings }
}
