import type { Network } from '@purser/protocol'
import type { DueStarts } from '../../platform/db/due-checks.ts'
import type { ByOrganisation } from '../../platform/work/by-organisation.ts'
import type { RelayPurpose } from './port.ts'
import type { Ctx } from './ports.ts'
import type { Backoff } from './store.ts'

type System = Omit<Ctx, 'tenant'>

export interface RelayTimings {
  /** How long a process that cannot be reached keeps its networks. */
  readonly leaseMs: number
  readonly backoff: Backoff
  /** How long a small batch waits for more while an earlier one is not in a block yet. */
  readonly batchMs: number
  /** A signature with less remaining time than this is not sent: it would only burn gas. */
  readonly timeLeftMs: number
}

/** Timings of a deployment whose leases last this long. */
export const relayTimings = (leaseMs: number): RelayTimings => ({
  leaseMs,
  backoff: { firstMs: 1_000, mostMs: 300_000 },
  batchMs: 600,
  timeLeftMs: 2_000,
})

/** The relayer's dependencies: chains, lanes, the settler's address and the timings come from outside, by `ctx` and here. */
export interface RelayerParts {
  readonly ctx: System
  /** The networks on which signatures are relayed. */
  readonly networks: readonly Network[]
  readonly purposes: ReadonlyMap<string, RelayPurpose>
  readonly timings: RelayTimings
  /** Where the next look-up of relays to check starts. */
  readonly checkStarts: DueStarts
  /** Limits the searches for the transactions of used nonces. */
  readonly search: ByOrganisation
}

/** Name of the relayer's transactions in the lane. */
export const relayPurpose = 'relays'

export function purposeOf({ purposes }: Pick<RelayerParts, 'purposes'>, name: string): RelayPurpose {
  const purpose = purposes.get(name)
  if (purpose === undefined) throw new Error(`no feature registered the relay purpose ${name}`)
  return purpose
}
