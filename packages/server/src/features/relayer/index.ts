import type { Signal } from '../../platform/signal.ts'
import { createByOwner } from '../../platform/work/by-owner.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { relayHandler } from './handler.ts'
import { type RelayerParts, relayTimings } from './parts.ts'
import type { RelayPurpose } from './port.ts'
import type { Deps } from './ports.ts'
import { type Relayer, startRelayer } from './relayer.ts'

export { authorizationOf, gasOfAuthorization } from './forms/authorization.ts'
export { findUse, gasOf, movedIn, nonceStates } from './forms/index.ts'
export { gasOfPermit2, gasOfUpto, settlementOf, whyNotPermit2 } from './forms/permit2.ts'
export { relayHandler } from './handler.ts'
export { type RelayerParts, relayTimings } from './parts.ts'
export type {
  Admission,
  CarriedRelay,
  FailedRelay,
  Relay,
  RelayFault,
  RelayPurpose,
  SettledRelay,
} from './port.ts'
export {
  type AuthorizationPayload,
  type RelayPayload,
  relayPurpose,
  StoredAuthorization,
  StoredPermit2,
} from './port.ts'
export type { Deps as RelayerDeps } from './ports.ts'
export { isNonceTaken } from './queue-store.ts'
export { passRelays } from './relayer.ts'
export { relays } from './relays.ts'
export { type PlannedBounds, signPlanned } from './sign-planned.ts'
export { carriesRelays } from './store.ts'

/** Parts of the relayer that sends for these purposes. */
export function relayerParts(deps: Deps, purposes: readonly RelayPurpose[], leaseMs: number): RelayerParts {
  return {
    ctx: systemCtx(deps),
    networks: deps.chains.configured.filter(({ settlesEip3009 }) => settlesEip3009),
    purposes: new Map(purposes.map((purpose) => [purpose.purpose, purpose])),
    timings: relayTimings(leaseMs),
    checkCursors: new Map(),
    search: createByOwner(),
  }
}

/** Builds the feature. It sends the relays of `purposes`, and reads its queue at once when `wanted` is raised. */
export function createRelayer(
  deps: Deps,
  {
    purposes,
    leaseMs,
    wanted,
  }: { readonly purposes: readonly RelayPurpose[]; readonly leaseMs: number; readonly wanted: Signal },
) {
  const parts = relayerParts(deps, purposes, leaseMs)
  return {
    laneHandlers: [relayHandler(parts)],
    start(): Pick<Relayer, 'stop'> {
      const relayer = startRelayer(parts)
      const ignore = wanted.listen(() => relayer.notify())
      return {
        stop() {
          ignore()
          return relayer.stop()
        },
      }
    },
  }
}
