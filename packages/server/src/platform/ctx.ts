import type { EventPayloads, EventType } from '@purser/protocol'
import type { AuditEntry, Auditing } from './audit.ts'
import type { Role, Scope } from './roles.ts'
import type { Actor, Environment, Tenant } from './tenant.ts'

export type { Actor, Environment, Tenant } from './tenant.ts'

import type { Clock } from './clock.ts'
import type { Db, Tx } from './db/db.ts'
import type { FairDb } from './db/fair-db.ts'
import type { ReplayCharges } from './event-streams/replay-cost.ts'
import type { KeptBytes } from './http/kept-bytes.ts'
import type { AccountId, ApiKeyId, Id, OrganisationId, RequestId } from './ids.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Random } from './random.ts'
import type { Sealer } from './secret.ts'
import type { WithSemaphores } from './semaphores.ts'
import type { Witness } from './witness/witness.ts'
import type { Probe } from './work/due-work.ts'

/** A signed-in person, as of one request. */
export interface Person {
  readonly accountId: AccountId
  readonly sessionId: Id<'ssn'>
  /** The role in the organisation that the request names; undefined where it names none. */
  readonly role: Role | undefined
  /** Whether the person works in the live environment of that organisation too; see `members.is_live`. */
  readonly isLive: boolean
  /** Whether the operator has suspended that organisation. */
  readonly isSuspended: boolean
  /** As `Caller.shareOwner`, for calls in that organisation; the account itself if the request names none. */
  readonly shareOwner: string
  /** The beginning of this session: the last time that the person authenticated. */
  readonly authenticatedAt: Date
}

/** The caller: an API key, a guest with a token for one resource, or a person. */
export interface Caller {
  readonly tenant: Tenant
  readonly actor: Actor
  /**
   * The organisation or account whose share of this process's limits the call uses: the account of an organisation on the free plan, otherwise the
   * organisation.
   */
  readonly shareOwner: string
  /** Set where the actor is a person. */
  readonly person?: Person
  /** The scopes of an API key; undefined for a key that has all, and for others. */
  readonly scopes?: readonly Scope[]
  /** Set where the operator has suspended the organisation of the tenant. */
  readonly isSuspended?: true
}

/**
 * The tenant of a person's call that names no organisation: the account itself. Its Idempotency-Keys and audit log belong to the account; no
 * organisation has such an id.
 */
export function tenantOfAccount(accountId: AccountId): Tenant {
  return { organisationId: accountId as string as OrganisationId, environment: 'test' }
}

/** The id of the actor if it is an API key or a person, otherwise the kind of actor. */
export function actorId(actor: Actor): string {
  return actor.kind === 'api-key' || actor.kind === 'person' ? callerId(actor) : actor.kind
}

/** The id of the API key or the account that makes a call; throws for a guest and for the service itself. */
export function callerId(actor: Actor): ApiKeyId | AccountId {
  if (actor.kind === 'api-key') return actor.apiKeyId
  if (actor.kind === 'person') return actor.accountId
  throw new Error('only an API key or a person makes this call')
}

/** Returns the share owner of a call. Work of the service itself for an organisation uses the organisation's share. */
export function shareOwnerOf({ shareOwner, tenant }: Pick<Call, 'shareOwner' | 'tenant'>): string {
  return shareOwner ?? tenant.organisationId
}

/** Dependencies that live as long as the process, of every part. A feature adds its own in its `ports.ts`. */
export interface Deps {
  readonly db: Db
  /** Limits a tenant's requests to its share of the connections of `db`. */
  readonly fairDb: FairDb
  /** Queues of requests that would lock the same rows, before they take a connection. */
  readonly withSemaphores: WithSemaphores
  /** Counts what requests store under their Idempotency-Keys. */
  readonly keptBytes: KeptBytes
  /** Wakes loops when the database has work for them. */
  readonly probe: Probe
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly sealer: Sealer
  /** Prevents a restored database from repeating actions that were done before the restore. */
  readonly witness: Witness
  /** Public base URL of this deployment, without a trailing slash; problem types and links begin with it. */
  readonly baseUrl: string
  /** The page on which a user upgrades the plan: `{dashboard_url}/settings/billing`. */
  readonly upgradeUrl: string
  /** The environments that this deployment serves. */
  readonly environments: readonly Environment[]
  /** Additional details of `/readyz`. Never an address or a path: the page is public. */
  readonly readinessDetails?: () => Promise<Readonly<Record<string, unknown>>>
  /** Readiness check: looks up an API key that does not exist, with the query of each request. Rejects if the database does not respond. */
  readonly lookUpKey?: () => Promise<unknown>
  /**
   * Called after each commit that wrote events, in the process that wrote them, with whether a webhook subscribes to any of them. The outbox is
   * authoritative. Must not throw.
   */
  readonly eventsCommitted?: (events: { readonly haveSubscribers: boolean }) => void
}

/** The facts about one call. */
export interface Call extends Background {
  readonly tenant: Tenant
}

/** The members with which background work publishes and audits for a tenant; see `forTenant`. */
export type ActingCtx = Auditing & Pick<Deps, 'eventsCommitted'>

/** The members that `forTenant` adds to a context. */
export type TenantActs = Pick<Call, 'audit' | 'publish' | 'tenant'>

/** The part of a call that background work has: no tenant. */
export interface Background {
  readonly actor: Actor
  /** The person who calls; undefined for an API key, a guest and work of the service itself. */
  readonly person?: Person | undefined
  /** As of the caller; undefined for work of the service itself. */
  readonly shareOwner?: string | undefined
  readonly requestId: RequestId
  /** Aborted when the process stops, for work that a task repeats until none is left. Not set for requests. */
  readonly stopping?: AbortSignal | undefined
  /** Writes an event to the outbox in the caller's transaction, so that a fact and its event commit together. */
  publish<T extends EventType>(tx: Tx, type: T, payload: EventPayloads[T]): Promise<Id<'evt'>>
  /** Appends to the organisation's hash-chained audit log in the caller's transaction. */
  audit(tx: Tx, entry: AuditEntry): Promise<void>
  /** For operations with `idempotency: 'intent'`: ties the caller's Idempotency-Key to the resource in the intent's transaction. */
  readonly idempotency: IdempotencyHandle | undefined
  /**
   * Counts a refusal that is to be recorded. Returns how many of the caller's have left no record since its last one; undefined beyond its limit.
   * Not set for work of the service itself.
   */
  readonly takeRefusalRecord?: (() => number | undefined) | undefined
  /**
   * Looks the caller up again and throws its refusal: a key that was revoked, a session that has ended, another role. Called where work that may have
   * taken long has its effect. Not set for work of the service itself.
   */
  readonly refuseEnded?: (() => Promise<void>) | undefined
  /**
   * Charges what a stream sends after the head of its response. Keeps nothing of the request, which ends long before its stream. Not set for work of the
   * service itself.
   */
  readonly replayCharges?: ReplayCharges | undefined
  /** For operations with `idempotency: 'batch'`: the caller's Idempotency-Key, which the handler claims and stores in its batch's transaction. */
  readonly batchedKey?: BatchedKey | undefined
}

/** Context of one call: the dependencies of the platform and the caller. A feature's own context has its dependencies instead. */
export interface Ctx extends Deps, Call {}

/** The claim of an Idempotency-Key while its request runs. */
export interface IdempotencyHandle {
  readonly key: string
  /** `content` is for an operation with `readContent`: the digest of the body, which is known only after it was read. */
  commit(tx: Tx, resourceId: string, content?: Uint8Array): Promise<void>
  /** As `commit`, for a resource that exists already. The keys of concurrent requests share a statement. */
  commitAlone(db: Db, resourceId: string): Promise<void>
}

/** The Idempotency-Key of a request that commits together with others. */
export interface BatchedKey {
  readonly key: string
  readonly fingerprint: Uint8Array
  /**
   * Returns the stored form of the response to a result. If the body is too large it is null, and a repeat rebuilds the response from `resourceId`.
   */
  storedAs(result: unknown): {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: Uint8Array | null
    readonly resourceId: string | null
  }
}
