import { z } from 'zod'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import type { AccountId, ApiKeyId, OrganisationId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { EnvironmentName } from './schema.ts'

export const ApiKeyRow = z.object({
  id: id('key'),
  name: z.string(),
  environment: EnvironmentName,
  last4: z.string(),
  createdAt: z.date(),
  lastUsedAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
})
export type ApiKeyRow = z.output<typeof ApiKeyRow>

const columns = sql`id, name, environment, last4, created_at, last_used_at, revoked_at`

export interface StoredApiKey {
  readonly id: ApiKeyId
  readonly environment: Environment
  readonly name: string
  readonly keyHash: Uint8Array
  readonly last4: string
  readonly createdBy: AccountId
  readonly createdAt: Date
}

export async function insertApiKey(tx: Tx, organisationId: OrganisationId, key: StoredApiKey): Promise<void> {
  await tx.run(sql`
    insert into api_keys (id, organisation_id, environment, name, key_hash, last4, created_by, created_at)
    values (${key.id}, ${organisationId}, ${key.environment}, ${key.name}, ${key.keyHash}, ${key.last4}, ${key.createdBy}, ${key.createdAt})`)
}

/**
 * The keys that a caller may list and revoke: a test key those of test; a live key, which may create both, those of the whole
 * organization.
 */
function inReach(tenant: Tenant): Sql {
  return sql`organisation_id = ${tenant.organisationId} and (environment = ${tenant.environment} or ${tenant.environment}::text = 'live')`
}

/** Returns keys, newest first, including revoked ones, one more than the limit. */
export function listApiKeys(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ApiKeyRow[]> {
  return db.many(
    ApiKeyRow,
    sql`
    select ${columns} from api_keys
    where ${inReach(tenant)} and (${page.after ?? null}::text is null or id < ${page.after ?? null})
    order by id desc limit ${page.limit + 1}`,
  )
}

/** Locks the key until the transaction ends. */
export function lockApiKey(tx: Tx, tenant: Tenant, apiKeyId: ApiKeyId): Promise<ApiKeyRow | undefined> {
  return tx.maybeOne(
    ApiKeyRow,
    sql`select ${columns} from api_keys where ${inReach(tenant)} and id = ${apiKeyId} for no key update`,
  )
}

export async function markRevoked(tx: Tx, tenant: Tenant, apiKeyId: ApiKeyId, revokedAt: Date): Promise<void> {
  await tx.run(sql`
    update api_keys set revoked_at = ${revokedAt} where ${inReach(tenant)} and id = ${apiKeyId} and revoked_at is null`)
}

const LiveKey = z.object({
  keyHash: z.instanceof(Uint8Array),
  apiKeyId: id('key'),
  organisationId: id('org'),
  environment: EnvironmentName,
})

/** Returns the valid keys with these hashes. It searches across organizations, because it finds the organization. */
export function listKeysByHash(db: Queryable, hashes: readonly Uint8Array[]): Promise<z.output<typeof LiveKey>[]> {
  return db.many(
    LiveKey,
    sql`
    select key_hash, id as api_key_id, organisation_id, environment from api_keys
    where key_hash = any(${hashes}::bytea[]) and revoked_at is null`,
  )
}

/** Returns those of the keys that are revoked. It searches across organizations, as the lookup by hash does. */
export async function listRevoked(db: Queryable, apiKeyIds: readonly ApiKeyId[]): Promise<ApiKeyId[]> {
  const rows = await db.many(
    z.object({ id: id('key') }),
    sql`select id from api_keys where id = any(${apiKeyIds}::text[]) and revoked_at is not null`,
  )
  return rows.map((row) => row.id)
}

/** Writes when keys were last used; rows are locked in one order, so that two processes never deadlock. */
export async function markUsed(db: Queryable, uses: ReadonlyMap<ApiKeyId, Date>): Promise<void> {
  await db.run(sql`
    with given as (select * from unnest(${[...uses.keys()]}::text[], ${[...uses.values()]}::timestamptz[]) as given (id, used_at)),
      locked as (select id from api_keys where id in (select id from given) order by id for no key update)
    update api_keys set last_used_at = greatest(api_keys.last_used_at, given.used_at)
    from given join locked on locked.id = given.id where api_keys.id = given.id`)
}
