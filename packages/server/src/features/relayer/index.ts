export { authorizationOf, gasOfAuthorization } from './forms/authorization.ts'
export { findUse, gasOf, nonceStates } from './forms/index.ts'
export { settlementOf, whyNotPermit2 } from './forms/permit2.ts'
export { relayHandler } from './handler.ts'
export { type RelayerParts, relayPurpose, relayTimings } from './parts.ts'
export { type AuthorizationPayload, type RelayPayload, StoredAuthorization, StoredPermit2 } from './payload.ts'
export type {
  Admission,
  CarriedRelay,
  FailedRelay,
  Relay,
  RelayFault,
  RelayPurpose,
  SettledRelay,
} from './port.ts'
export { isNonceTaken } from './queue-store.ts'
export { passRelays, startRelayer } from './relayer.ts'
export { relays } from './relays.ts'
