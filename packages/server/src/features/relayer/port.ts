import type { Hex } from '@purser/protocol'
import { z } from 'zod'
import { StoredHex } from '../../platform/db/columns.ts'
import type { Queryable, Sql, Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'

/** Name of the relayer's transactions in the lane. */
export const relayPurpose = 'relays'

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
 * The reason why a relay ended without its money moving. `reason` is the x402 error code. `nonce-used`: another transaction spent or canceled the
 * nonce. `not-carried`: the chain would accept it, and transactions that carried it moved nothing.
 */
export interface RelayFault {
  readonly kind: 'expired' | 'nonce-used' | 'canceled' | 'insufficient-balance' | 'refused' | 'not-carried'
  readonly reason: string
}

/** The block whose transaction moved the money. */
export interface SettlingBlock {
  readonly number: bigint
  readonly hash: Hex
}

export interface SettledRelay {
  readonly relay: Relay
  readonly transactionHash: Hex
  /** The block of that transaction; undefined for a permit that somebody else used. */
  readonly block: SettlingBlock | undefined
  /** The operator's cost of its transaction, in wei; 0 where somebody else sent it. */
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

/** A feature's decision about a relay that is about to be sent: send it, `wait` (decide again in some seconds), or end it with a fault. */
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

const StoredSignature = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ecdsa'), v: z.union([z.literal(27), z.literal(28)]), r: StoredHex, s: StoredHex }),
  z.object({ kind: z.literal('bytes'), signature: StoredHex }),
])

/** A signed EIP-3009 authorization as stored. Integers are decimal text. */
export const StoredAuthorization = z.object({
  kind: z.literal('eip3009').default('eip3009'),
  from: StoredHex,
  to: StoredHex,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: StoredHex,
  signature: StoredSignature,
  deployment: z.object({ factory: StoredHex, calldata: StoredHex }).nullable(),
  /** Most gas that its amount pays for, where that is less than the usual grant: a contract decides how much it uses. */
  gas: z.string().optional(),
})
export type StoredAuthorization = z.output<typeof StoredAuthorization>

/** A signed Permit2 transfer for one of the x402 proxies (x402 schemes exact and upto on EVM), as stored. */
export const StoredPermit2 = z.object({
  kind: z.literal('permit2'),
  scheme: z.enum(['exact', 'upto']),
  /** The x402 proxy that may spend it. */
  spender: StoredHex,
  owner: StoredHex,
  token: StoredHex,
  /** Most that may be charged. */
  permitted: z.string(),
  /** Amount that is charged; for upto known when settlement is requested. */
  charged: z.string(),
  nonce: z.string(),
  deadline: z.string(),
  witness: z.object({ to: StoredHex, validAfter: z.string(), facilitator: StoredHex.nullable() }),
  signature: StoredHex,
  /** A signed EIP-2612 permit that lets Permit2 spend (extension eip2612GasSponsoring). */
  permit2612: z
    .object({ value: z.string(), deadline: z.string(), v: z.number(), r: StoredHex, s: StoredHex })
    .nullable()
    .default(null),
  /** As that of an authorization; for upto fixed at verify, whatever is charged. */
  gas: z.string().optional(),
  /** The smallest charge of an upto permit at verify. */
  least: z.string().optional(),
})
export type StoredPermit2 = z.output<typeof StoredPermit2>

/** An authorization and its token. */
export const AuthorizationPayload = StoredAuthorization.extend({ token: StoredHex })
export type AuthorizationPayload = z.output<typeof AuthorizationPayload>

/** A signed payload that the settler sends. */
export const RelayPayload = z.union([StoredPermit2, AuthorizationPayload])
export type RelayPayload = z.output<typeof RelayPayload>
