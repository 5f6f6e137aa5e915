import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { VaultStatus } from './schema.ts'
import type { Lifetime } from './ttl.ts'
import type { VaultId } from './vault.ts'

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

/** The vault if it is not gone at that instant. */
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
 * Holds the vault's row until the transaction ends, so that a write and a seal cannot pass each other. Whoever wants it queues
 * for an advisory lock first: a row that each holder changes goes to whoever happens to ask next, and of sixteen writers at
 * once the slowest in a hundred were measured to wait three times as long. The queue is the tenant's own: whoever asks for another's
 * vault neither waits for its writers, which would tell that it is there, nor keeps them waiting.
 */
export async function lockVault(tx: Tx, tenant: Tenant, vaultId: VaultId): Promise<VaultRow | undefined> {
  const queue = `vault:${tenant.organisationId}/${tenant.environment}/${vaultId}`
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${queue}, 0))`)
  return tx.maybeOne(
    VaultRow,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}
    for update`,
  )
}

export interface VaultFilter {
  readonly status: VaultStatus | undefined
  /** What is gone by then is left out. */
  readonly now: Date
}

/** Vaults that are not gone, newest first, one more than the limit. */
export function listVaults(
  db: Queryable,
  tenant: Tenant,
  { status, now }: VaultFilter,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<VaultRow[]> {
  return db.many(
    VaultRow,
    sql`
    select ${vaultColumns} from vaults
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and (expires_at is null or expires_at > ${now})
      and (${status ?? null}::text is null
        or ${status ?? null} = case when sealed_at is not null then 'sealed' when persisted_at is not null then 'persisted' else 'active' end)
      and (${page.after ?? null}::text is null or id < ${page.after ?? null})
    order by id desc limit ${page.limit + 1}`,
  )
}

/** Gives the vault another end; the caller holds its row. */
export async function setLifetime(tx: Tx, tenant: Tenant, vaultId: VaultId, lifetime: Lifetime): Promise<void> {
  await tx.run(sql`
    update vaults set expires_at = ${lifetime.expiresAt}, expiring_due = ${lifetime.expiringDue}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/** Keeps the vault until it is deleted; the caller holds its row and has moved its count. */
export async function markPersisted(tx: Tx, tenant: Tenant, vaultId: VaultId, persistedAt: Date): Promise<void> {
  await tx.run(sql`
    update vaults set persisted_at = ${persistedAt}, counted_as = 'persisted', expires_at = null, expiring_due = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/** Writes what its owner says of the vault; the caller holds its row. */
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
  readonly manifest: unknown
  readonly manifestHash: string
  readonly statement: string
}

/** Closes the vault to writes for ever; the caller holds its row. */
export async function markSealed(tx: Tx, tenant: Tenant, vaultId: VaultId, seal: SealRecord): Promise<void> {
  await tx.run(sql`
    update vaults set summary = ${seal.summary}, sealed_at = ${seal.sealedAt}, manifest = ${JSON.stringify(seal.manifest)},
      manifest_hash = ${seal.manifestHash}, statement = ${seal.statement}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${vaultId}`)
}

/**
 * Deletes vaults with all that they hold, and queues their files' blobs for deletion in the same transaction. The caller
 * holds the rows and gives their counts back.
 */
export async function deleteVaults(tx: Tx, tenant: Tenant, vaultIds: readonly VaultId[], now: Date): Promise<void> {
  const { organisationId, environment } = tenant
  await tx.run(sql`
    insert into blob_deletions (blob_key, created_at)
    select blob_key, ${now} from vault_files
    where organisation_id = ${organisationId} and environment = ${environment} and vault_id = any(${vaultIds}::text[])
    on conflict do nothing`)
  await tx.run(sql`
    delete from vaults
    where organisation_id = ${organisationId} and environment = ${environment} and id = any(${vaultIds}::text[])`)
}
