import type { Address } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly screening: Screening
  }
}

export type ScreeningResult = 'pending' | 'clear' | 'flagged'

/**
 * Why: `listed` and `oracle-sanctioned` flag; `list-stale`, `oracle-failed`, `oracle-unknown` and `oracle-not-configured` leave an address
 * pending; `clean` clears; `sandbox` is the sandbox screening's own answer, for test keys alone. With a stale list the reason of a pending
 * address is `list-stale`, whatever the oracle answered.
 */
export type ScreeningReason =
  | 'listed'
  | 'oracle-sanctioned'
  | 'list-stale'
  | 'oracle-failed'
  | 'oracle-unknown'
  | 'oracle-not-configured'
  | 'clean'
  | 'sandbox'

/**
 * What the on-chain oracle answered: `none` where no network with an oracle has a node, `unknown` where memory has no answer of the last day
 * and nobody waited for one.
 */
export type OracleAnswer = 'clean' | 'sanctioned' | 'failed' | 'none' | 'unknown'

export interface Screened {
  readonly result: ScreeningResult
  readonly reason: ScreeningReason
  readonly oracle: OracleAnswer
}

/** What one asking of all sources gave, for all addresses that were asked about. */
export interface ScreeningRound {
  readonly listVersion: bigint
  readonly listAsOf: Date
  /** The networks whose oracle was asked. */
  readonly oracleNetworks: readonly string[]
  /** Of an address that was asked about, in whatever letter case. In `test` an oracle that is not configured is not waited for. */
  of(address: string, environment: Environment): Screened
}

export interface ListState {
  readonly version: bigint
  readonly source: string
  /** `YYYY-MM-DD`. */
  readonly listDate: string
  readonly asOf: Date
  readonly addressCount: number
  readonly isStale: boolean
}

/** Asks whether addresses are sanctioned: the list, then the on-chain oracle. */
export interface Screening {
  /** Never throws for a source that fails: that is the result `pending`. At most `addressesMax` at once. */
  screen(addresses: readonly Address[]): Promise<ScreeningRound>
  readonly addressesMax: number
  /**
   * What is known of an address in this moment, from memory: the list, which follows the database within seconds, and the oracle's answers of the
   * last day. It asks no node and no database. An address without an answer is looked up in the background.
   */
  screenNow(address: Address, environment: Environment): Screened
  /**
   * Whether no other list has taken the place of this one. Asked in the transaction that writes a result down, after the row of its
   * subject is locked: a list that comes later then finds the result written, and screens again what it changes.
   */
  isCurrentList(tx: Tx, version: bigint): Promise<boolean>
  list(): Promise<ListState>
  /** Addresses, in lower case, that are on one of the two lists and not on the other. */
  difference(from: bigint, to: bigint): Promise<readonly string[]>
  /** Fetches the list anew when it is time, as one process of all that ask; tells the operator while the list is stale. */
  refreshIfDue(): Promise<void>
  /** Ends what works in the background. */
  stop(): Promise<void>
}
