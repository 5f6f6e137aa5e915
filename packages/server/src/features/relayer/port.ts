import type { Hex } from '@purser/protocol'
import type { Queryable, Sql, Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import type { Closing } from './closing.ts'
import type { RelayPayload } from './payload.ts'

export const relayStates = ['waiting', 'included', 'settled', 'failed', 'expired', 'withdrawn'] as const
export type RelayState = (typeof relayStates)[number]

/** Something that somebody signed and the settler sends. */
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
 * Why a relay ended without its money moving. `reason` is x402's word for it. `nonce-used`: another transaction spent or canceled the nonce.
 * `not-carried`: the chain would take it, and transactions that carried it moved nothing.
 */
export interface RelayFault {
  readonly kind: 'expired' | 'nonce-used' | 'canceled' | 'insufficient-balance' | 'refused' | 'not-carried'
  readonly reason: string
}

export interface SettledRelay {
  readonly relay: Relay
  readonly transactionHash: Hex
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

/** What an attempt that moved nothing cost the operator, in wei. Where nobody can tell a relay's share, it is the whole grant. */
export interface SpentOnRelay {
  readonly relay: Relay
  readonly wei: bigint
}

/** What a feature decides about a relay that is about to be sent. `wait`: look again in some seconds. A fault ends it. */
export type Admission = 'send' | 'wait' | RelayFault

/**
 * A feature whose signatures the relayer sends. Every callback gets all of its relays that come to the step together, runs in the database
 * transaction that writes the step, and so happens once with it. Locks are taken in one order: relays, the subjects of all purposes by the
 * purposes' names, what the callbacks count, and at the end what they return as their closing.
 */
export interface RelayPurpose {
  readonly purpose: string
  /** Of the settler's transactions in flight, the share up to which this purpose is still sent: from 0 to 1. */
  readonly share: number
  /** Whether a relay that the chain refuses ends at once, or waits for its signature to expire. */
  readonly refusal: 'fail' | 'wait'
  /** Locks subjects whose relays are about to end, in one order. A subject that ends alone is locked by the callback that ends it. */
  lock(tx: Tx, subjectIds: readonly string[]): Promise<void>
  /** Decides about relays that are about to be sent, in their order. Left out, all are sent. */
  admit?(tx: Tx, relays: readonly Relay[]): Promise<readonly Admission[]>
  /** Signed bytes that carry them are stored; comes again for every replacement. */
  onSent?(tx: Tx, carried: readonly CarriedRelay[]): Promise<void>
  /** A block, which may still be reorganized away, shows their money moving. */
  onIncluded?(tx: Tx, carried: readonly CarriedRelay[]): Promise<void>
  /** The block that `onIncluded` reported is gone; the same bytes are sent again. */
  onReorganized?(tx: Tx, relays: readonly Relay[]): Promise<void>
  /** Their transaction is in a block and did not carry them, or can never be in one. */
  onLeft?(tx: Tx, relays: readonly Relay[]): Promise<void>
  /** At the confirmation depth, for good. May come for a relay that had failed. */
  onSettled(tx: Tx, settled: readonly SettledRelay[]): Promise<Closing>
  onFailed(tx: Tx, failed: readonly FailedRelay[]): Promise<Closing>
  /** What a final transaction cost, for every relay in it that it did not carry. */
  onSpent(tx: Tx, spent: readonly SpentOnRelay[]): Promise<Closing>
}

/**
 * Where other features put what was signed. `source` is a statement that returns `subject_id, network, organisation_id, environment, payload,
 * valid_before, created_at`; it may be an update.
 */
export interface Relays {
  /** Puts rows into the queue, all of them or none: throws an error of which `isNonceTaken` is true where another relay has one's nonce. */
  enqueue(db: Queryable, purpose: string, source: Sql): Promise<void>
  /**
   * Puts rows into the queue, outside a transaction. One that the database refuses fails by itself: the others are put into it one by one.
   * Returns for each why it failed, undefined where it did not.
   */
  enqueueEach<T>(
    db: Queryable,
    purpose: string,
    items: readonly T[],
    sourceOf: (items: readonly T[]) => Sql,
  ): Promise<readonly (Error | undefined)[]>
  /**
   * Takes a relay out of the queue, in the caller's transaction. Only one that no transaction carries can be: earlier ones are final without it
   * or can never be mined. Returns whether it was taken out.
   */
  withdraw(tx: Tx, purpose: string, subjectId: string): Promise<boolean>
}
