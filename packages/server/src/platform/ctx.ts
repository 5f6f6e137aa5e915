import type { EventPayloads, EventType } from '@purser/protocol'
import type { AuditEntry } from './audit.ts'
import type { Clock } from './clock.ts'
import type { Db, Tx } from './db/db.ts'
import type { ApiKeyId, Id, OrganisationId, RequestId } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Random } from './random.ts'
import type { Sealer } from './secret.ts'
import type { Turns } from './turns.ts'
import type { Witness } from './witness/witness.ts'

export type Environment = 'test' | 'live'

/** Whose rows a statement may touch. Every store function takes it right after the database handle. */
export interface Tenant {
  readonly organisationId: OrganisationId
  readonly environment: Environment
}

/** Who did it, for the audit log. */
export type Actor =
  | { readonly kind: 'api-key'; readonly apiKeyId: ApiKeyId }
  /** Whoever holds a token, a link or a ticket that opens one thing; `guestId` names it. */
  | { readonly kind: 'guest'; readonly guestId: string }
  | { readonly kind: 'operator' }
  | { readonly kind: 'system' }

/**
 * Ports to the outside that the rooms below the features add by declaration merging (`declare module`), so that the
 * platform knows none of their words.
 */
// biome-ignore lint/suspicious/noEmptyInterface: rooms merge their ports into it
export interface Ports {}

/** What lives as long as the process. */
export interface Deps extends Ports {
  readonly db: Db
  /** Where work that many ask for at once waits before it takes a connection. */
  readonly turns: Turns
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly sealer: Sealer
  /** Keeps a restored database from doing twice what was done before. */
  readonly witness: Witness
  /** Public base address of this deployment, without a trailing slash; problem types and links begin with it. */
  readonly baseUrl: string
  /** Where a person upgrades the plan: `{dashboard_url}/settings/billing`. */
  readonly upgradeUrl: string
  /** The environments that this deployment serves. */
  readonly environments: readonly Environment[]
  /** What `/readyz` tells beside the database. Never where anything is: it is public. */
  readonly readinessDetails?: () => Promise<Readonly<Record<string, unknown>>>
  /** Told after each commit that wrote events, in the process that wrote them; the outbox is the truth. Must not throw. */
  readonly eventsCommitted?: () => void
}

/** One call: the process's ports and who is calling. Jobs get the same record. */
export interface Ctx extends Deps {
  readonly tenant: Tenant
  readonly actor: Actor
  readonly requestId: RequestId
  /** Writes an event to the outbox in the caller's transaction, so that a fact and its event commit together. */
  publish<T extends EventType>(tx: Tx, type: T, payload: EventPayloads[T]): Promise<Id<'evt'>>
  /** Appends to the organisation's hash-chained audit log in the caller's transaction. */
  audit(tx: Tx, entry: AuditEntry): Promise<void>
  /** For operations with `idempotency: 'intent'`: ties the caller's Idempotency-Key to the resource in the intent's transaction. */
  readonly idempotency: IdempotencyHandle | undefined
}

/** The claim that an Idempotency-Key holds while its request runs. */
export interface IdempotencyHandle {
  readonly key: string
  /** `content` is for an operation with `readContent`: what the body was, which is known only once it was read. */
  commit(tx: Tx, resourceId: string, content?: Uint8Array): Promise<void>
}
