import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { lockNameOfText } from '../../platform/db/lock-name.ts'
import { type ListedRows, listRows, newestFirst, newestOf } from '../../platform/db/page.ts'
import { id } from '../../platform/ids.ts'
import type { VaultEvent, VaultId, VaultStatus } from './schema.ts'
import type { Lifetime } from './ttl.ts'

const Bytes = z.bigint().transform(Number)

export const VaultRow = z.object({
  id: id('vlt'),
  description: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  sessionId: id('sess').nullable(),
  paymentId: id('pay').nullable(),
  expiresAt: z.date().nullable(),
  expiringDue: z.date().nullable(),
  summary: z.string().nullable(),
  sealedAt: z.date().nullable(),
  persistedAt: z.date().nullable(),
  manifestHash: z.string().nullable(),
  documentCount: z.number(),
  fileCount: z.number(),
  bytes: Bytes,
  eventCount: z.number(),
  eventHash: z.string(),
  eventAt: z.date(),
  createdAt: z.date(),
})
export type VaultRow = z.output<typeof VaultRow>

/** Every column of a `VaultRow`. */
export const vaultColumns = sql`id, description, metadata, session_id, payment_id, expires_at, expiring_due, summary, sealed_at, persisted_at,
  manifest_hash, document_count, file_count, bytes, event_count, event_hash, event_at, created_at`

/** Writes a new vault, active and empty. */
export async function insertVault(tx: Tx, tenant: Tenant, vault: VaultRow): Promise<void> {
  await tx.run(sql`
    insert into vaults (id, organisation_id, environment, description, metadata, session_id, payment_id, expires_at, expiring_due,
      event_hash, event_at, counted_as, created_at)
    values (${vault.id}, ${tenant.organisationId}, ${tenant.environment}, ${vault.description}, ${JSON.stringify(vault.metadata)},
      ${vault.sessionId}, ${vault.paymentId}, ${vault.expiresAt}, ${vault.expiringDue}, ${vault.eventHash}, ${vault.eventAt}, 'active',
      ${vault.createdAt})`)
}

/** Returns the vault if it has not expired at that instant. */
export function findVault(db: Queryable, tenant: Tenant, vaultId: VaultId, now: Date): Promise<VaultRow | undefined> {
  return db.maybeOne(
    VaultRow,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}
      and (expires_at is null or expires_at > ${now})`,
  )
}

/**
 * Locks the vault's row until the transaction ends, so that a write and a seal cannot pass each other. Writers queue for an
 * advisory lock first, because PostgreSQL does not grant a frequently updated row in order: of sixteen writers at once the
 * slowest in a hundred were measured to wait three times as long. The queue is the tenant's own: a request for another tenant's
 * vault neither waits for its writers, which would disclose that it exists, nor delays them.
 */
export async function lockVault(tx: Tx, tenant: Tenant, vaultId: VaultId): Promise<VaultRow | undefined> {
  // Sent together: PostgreSQL reads the row when it has granted the queue.
  const [, vault] = await Promise.all([
    tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${queueOf(tenant, vaultId)}, 0))`),
    tx.maybeOne(
      VaultRow,
      sql`
      select ${vaultColumns} from vaults
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}
      for update`,
    ),
  ])
  return vault
}

/**
 * Locks those of the vaults' rows that nobody else has locked or queues for, until the transaction ends. The others are left out, as are vaults
 * that do not exist. The tenant is compared without an index, since by that of its list each vault of the tenant would be read (decision 0170).
 */
export function lockFreeVaults(tx: Tx, tenant: Tenant, vaultIds: readonly VaultId[]): Promise<VaultRow[]> {
  return tx.many(
    VaultRow,
    sql`
    with free as materialized (
      select id from unnest(${vaultIds}::text[], ${vaultIds.map((vaultId) => queueOf(tenant, vaultId))}::text[]) as given (id, queue)
      where pg_try_advisory_xact_lock(hashtextextended(queue, 0))
    )
    select ${vaultColumns} from vaults
    where id in (select id from free)
      and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
    for update of vaults skip locked`,
  )
}

/** Returns the name of the advisory lock that is a vault's queue. The id is the caller's text: it is locked before it is known whether the vault exists. */
function queueOf({ organisationId, environment }: Tenant, vaultId: string): string {
  return lockNameOfText('vault', `${organisationId}/${environment}/${vaultId}`)
}

export interface VaultFilter {
  readonly status: VaultStatus | undefined
  /** Vaults that have expired by then are left out. */
  readonly now: Date
}

/** The status, written as in the index of vaults by status. */
const statusOf = sql`(case when sealed_at is not null then 'sealed' when persisted_at is not null then 'persisted' else 'active' end)`

/** Returns vaults that have not expired, newest first, one more than the limit. */
export function listVaults(
  db: Queryable,
  tenant: Tenant,
  { status, now }: VaultFilter,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<VaultRow>> {
  const bounds = { prefix: 'vlt', below: page.after }
  const { where, order } =
    status === undefined ? newestFirst(sql`id`, bounds) : newestOf(statusOf, status, sql`id`, bounds)
  return listRows(
    db,
    VaultRow,
    page.limit,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and (expires_at is null or expires_at > ${now})
      and ${where} order by ${order}`,
  )
}

/** Sets the vault's end; the caller has locked its row. */
export async function setLifetime(tx: Tx, tenant: Tenant, vaultId: VaultId, lifetime: Lifetime): Promise<void> {
  await tx.run(sql`
    update vaults set expires_at = ${lifetime.expiresAt}, expiring_due = ${lifetime.expiringDue}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/** Persists the vault until it is deleted; the caller has locked its row and has moved its count. */
export async function markPersisted(tx: Tx, tenant: Tenant, vaultId: VaultId, persistedAt: Date): Promise<void> {
  await tx.run(sql`
    update vaults set persisted_at = ${persistedAt}, counted_as = 'persisted', expires_at = null, expiring_due = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/** Writes the vault's description and metadata; the caller has locked its row. */
export async function describeVault(
  tx: Tx,
  tenant: Tenant,
  { id: vaultId, description, metadata }: Pick<VaultRow, 'id' | 'description' | 'metadata'>,
): Promise<void> {
  await tx.run(sql`
    update vaults set description = ${description}, metadata = ${JSON.stringify(metadata)}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

export interface SealRecord {
  readonly summary: string | null
  readonly sealedAt: Date
  /** JSON. */
  readonly manifest: string
  readonly manifestHash: string
  readonly statement: string
}

/** Closes the vault to writes forever; the caller has locked its row. */
export async function markSealed(tx: Tx, tenant: Tenant, vaultId: VaultId, seal: SealRecord): Promise<void> {
  await tx.run(sql`
    update vaults set summary = ${seal.summary}, sealed_at = ${seal.sealedAt}, manifest = ${seal.manifest},
      manifest_hash = ${seal.manifestHash}, statement = ${seal.statement}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/** Deletes vaults; a trigger of the table queues their contents for deletion. The caller has locked the rows and releases their counts. */
export async function deleteVaults(tx: Tx, tenant: Tenant, vaultIds: readonly VaultId[]): Promise<void> {
  const { organisationId, environment } = tenant
  await tx.run(sql`
    delete from vaults
    where organisation_id = ${organisationId} and environment = ${environment} and id = any(${vaultIds}::text[])`)
}

/** The amounts that a write adds to the counters of its vault. */
export interface VaultGrowth {
  readonly documents: number
  readonly files: number
  readonly bytes: number
}

export interface NewLink {
  readonly event: VaultEvent
  readonly at: Date
  /** From 1; unique, because the caller has locked the vault's row. */
  readonly sequence: number
  /** Head of the event chain including this event. */
  readonly hash: string
  /** Storage that the event itself counts for, in bytes. */
  readonly size: number
  readonly growth: VaultGrowth
}

/** Writes an event and moves the vault's head to it, in one statement; the caller has locked the vault's row. */
export async function insertLink(tx: Tx, tenant: Tenant, link: NewLink): Promise<void> {
  const { event, at, sequence, hash, size, growth } = link
  const { organisationId, environment } = tenant
  await tx.run(sql`
    with written as (
      insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
      values (${event.vaultId}, ${sequence}, ${event.eventId}, ${organisationId}, ${environment}, ${event.type},
        ${JSON.stringify(event.payload)}, ${size}, ${at})
    )
    update vaults set event_count = ${sequence}, event_hash = ${hash}, event_at = ${at},
      document_count = document_count + ${growth.documents}, file_count = file_count + ${growth.files}, bytes = bytes + ${growth.bytes}
    where organisation_id = ${organisationId} and environment = ${environment} and id = ${event.vaultId}`)
}
