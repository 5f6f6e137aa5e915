import type { Hex } from '@purser/protocol'
import type { Queryable, Sql, Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import type { RelayPayload } from './payload.ts'

export const relayStates = ['waiting', 'included', 'settled', 'failed', 'expired', 'withdrawn', 'watched'] as const
type RelayState = (typeof relayStates)[number]

/** A signed payload that the settler sends. */
export interface Relay {
  readonly id: bigint
  readonly network: string
  /** The feature that it belongs to, and its row there. */
  readonly purpose: string
  readonly subjectId: string
  readonly organisationId: OrganisationId
  readonly environment: 'test' | 'live'
  /** In lower case. */
  readonly signer: string
  readonly payload: RelayPayload
  readonly validBefore: Date
  readonly alone: boolean
  readonly state: RelayState
  readonly attempts: number
  readonly createdAt: Date
}

/**
 * Why a relay ended without its money moving. `reason` is the x402 error code. `nonce-used`: another transaction spent or
 * canceled the nonce. `not-carried`: the chain would accept it, and transactions that carried it moved nothing.
 */
export interface RelayFault {
  readonly kind: 'expired' | 'nonce-used' | 'canceled' | 'insufficient-balance' | 'refused' | 'not-carried'
  readonly reason: string
}

export interface SettledRelay {
  readonly relay: Relay
  readonly transactionHash: Hex
  /** The block of that transaction; undefined for a permit that somebody else used. */
  readonly blockHash: Hex | undefined
  /** What its transaction cost the operator, in wei; 0 where somebody else sent it. */
  readonly wei: bigint
}

export interface FailedRelay {
  readonly relay: Relay
  readonly fault: RelayFault
}

/** A relay and the newest transaction that carries it. */
export interface CarriedRelay {
  readonly relay: Relay
  readonly hash: Hex
}

/** The cost, in wei, to the operator of an attempt that moved nothing. The whole grant if a relay's share cannot be determined. */
export interface SpentOnRelay {
  readonly relay: Relay
  readonly wei: bigint
}

/** A feature's decision about a relay that is about to be sent. `wait`: decide again in some seconds. A fault ends it. */
export type Admission = 'send' | 'wait' | RelayFault

/**
 * A feature whose signatures the relayer sends. Every callback gets all of its relays that come to the step together, runs in the database
 * transaction that writes the step, and so happens once with it. Locks are taken in one order: relays, the subjects of all purposes by the
 * purposes' names, what the callbacks count, and at the end gas budgets and audit logs (`Tx.writeLast`).
 */
export interface RelayPurpose {
  readonly purpose: string
  /** Share of the settler's transactions in flight up to which this purpose is still sent: from 0 to 1. */
  readonly share: number
  /** Whether a relay that the chain refuses ends at once, or waits for its signature to expire. */
  readonly refusal: 'fail' | 'wait'
  /** Whether a relay has expired only at a block that is final as for deposits. If omitted, at the payment depth. */
  readonly expiry?: 'final'
  /**
   * Locks subjects whose relays are about to end, in one order. A subject that ends alone is locked by the callback that ends it.
   */
  lock(tx: Tx, subjectIds: readonly string[]): Promise<void>
  /** Decides about relays that are about to be sent, in their order. If omitted, all are sent. */
  admit?(tx: Tx, relays: readonly Relay[]): Promise<readonly Admission[]>
  /** Called when signed bytes that carry the relays are stored, and again for every replacement. */
  onSent?(tx: Tx, carried: readonly CarriedRelay[]): Promise<void>
  /** Called when a block, which may still be reorganized away, shows their money moving. */
  onIncluded?(tx: Tx, carried: readonly CarriedRelay[]): Promise<void>
  /** Called when the block that `onIncluded` reported is gone; the same bytes are sent again. */
  onReorganized?(tx: Tx, relays: readonly Relay[]): Promise<void>
  /** Called when their transaction is in a block and did not carry them, or can never be in one. */
  onLeft?(tx: Tx, relays: readonly Relay[]): Promise<void>
  /** At the confirmation depth. May come for a relay that had failed, and again for one that was reopened. */
  onSettled(tx: Tx, settled: readonly SettledRelay[]): Promise<void>
  onFailed(tx: Tx, failed: readonly FailedRelay[]): Promise<void>
  /** The cost of a final transaction, for every relay of its batch that it did not execute. */
  onSpent(tx: Tx, spent: readonly SpentOnRelay[]): Promise<void>
}

/**
 * The queue for signed payloads of other features. `source` is a statement that returns `subject_id, network, organisation_id,
 * environment, payload, valid_before, created_at`; it may be an update.
 */
export interface Relays {
  /** Enqueues rows, all of them or none. Throws an error for which `isNonceTaken` is true if another relay has the same nonce. */
  enqueue(db: Queryable, purpose: string, source: Sql): Promise<void>
  /**
   * Enqueues rows outside a transaction. A row that the database refuses fails by itself: the others are then enqueued one by
   * one. Returns an error for each that failed, undefined for the others.
   */
  enqueueEach<T>(
    db: Queryable,
    purpose: string,
    items: readonly T[],
    sourceOf: (items: readonly T[]) => Sql,
  ): Promise<readonly (Error | undefined)[]>
  /**
   * Reads the chain for these rows until their nonces are used or expired; the settler never sends them. `source` as for `enqueue`. Throws
   * an error for which `isNonceTaken` is true if another relay has the same nonce.
   */
  watch(db: Queryable, purpose: string, source: Sql): Promise<void>
  /**
   * Removes a relay from the queue, in the caller's transaction. Only possible if no transaction that may still be mined carries
   * it. Returns whether it was removed.
   */
  withdraw(tx: Tx, purpose: string, subjectId: string): Promise<boolean>
  /** Returns a settled relay whose block is gone to its queue. The chain is read before it is sent again. */
  reopen(tx: Tx, purpose: string, subjectId: string): Promise<void>
  /** As `reopen`, for a relay that is only watched. */
  watchAgain(tx: Tx, purpose: string, subjectId: string): Promise<void>
}
