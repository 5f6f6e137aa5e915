import type { Address } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'

/** The screening of addresses, as a dependency. */
export interface ScreeningPort {
  readonly screening: Screening
}

export type ScreeningResult = 'pending' | 'clear' | 'flagged'

/**
 * The reason for a result: `listed` and `oracle-sanctioned` flag an address; `list-stale`, `oracle-failed`, `oracle-unknown` and
 * `oracle-not-configured` leave it pending; `clean` clears it; `sandbox` is the sandbox screening's result, only for test keys. With a stale list
 * the reason of a pending address is `list-stale`, whatever the oracle answered.
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
 * The on-chain oracle's answer. `none`: no network with an oracle has a node. `unknown`: the cache has no answer of the last day, and the caller
 * did not wait for one.
 */
export type OracleResult = 'clean' | 'sanctioned' | 'failed' | 'none' | 'unknown'

export interface Screened {
  readonly result: ScreeningResult
  readonly reason: ScreeningReason
  readonly oracle: OracleResult
  /** Set for a test address that stands for one that no source can screen. */
  readonly simulatesNoSource?: true
}

/** The result of one query of all sources, for all screened addresses. */
export interface ScreeningBatch {
  readonly listVersion: bigint
  readonly listAsOf: Date
  /** The networks whose oracle was queried. */
  readonly oracleNetworks: readonly string[]
  /** The result of a screened address, in any letter case. In `test` an oracle that is not configured does not leave it pending. */
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

/** Screens addresses against the sanctions list and the on-chain oracle. */
export interface Screening {
  /** Screens at most `addressesMax` addresses. A failing source leads to the result `pending` and never throws. */
  screen(addresses: readonly Address[]): Promise<ScreeningBatch>
  readonly addressesMax: number
  /**
   * Screens an address from memory: the list, which follows the database within seconds, and the oracle's answers of the last day. Queries no node
   * and no database. An address without an answer is looked up in the background.
   */
  screenNow(address: Address, environment: Environment): Screened
  /**
   * Whether this list is still the current one. Call it in the transaction that stores a result, after locking the subject's row. A later list then
   * finds the stored result and screens changed addresses again.
   */
  isCurrentList(tx: Tx, version: bigint): Promise<boolean>
  list(): Promise<ListState>
  /** Addresses, in lower case, that are on one of the two lists and not on the other. */
  difference(from: bigint, to: bigint): Promise<readonly string[]>
  /** Refreshes the list when it is due, in one process at a time, and warns the operator while the list is stale. */
  refreshIfDue(): Promise<void>
  /** Stops background work. */
  stop(): Promise<void>
}
