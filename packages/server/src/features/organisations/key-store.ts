import { z } from 'zod'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import type { AccountId, ApiKeyId, OrganisationId } from '../../platform/ids.ts'
import { id } from '../../platform/ids.ts'
import { type Scope, scopes } from '../../platform/roles.ts'
import { shareOwnerSql } from '../plans/index.ts'
import { EnvironmentName } from './schema.ts'

export const ApiKeyRow = z.object({
  id: id('key'),
  name: z.string(),
  environment: EnvironmentName,
  last4: z.string(),
  scopes: z.array(z.enum(scopes)).nullable(),
  expiresAt: z.date().nullable(),
  madeBy: id('key').nullable(),
  createdAt: z.date(),
  lastUsedAt: z.date().nullable(),
  revokedAt: z.date().nullable(),
})
export type ApiKeyRow = z.output<typeof ApiKeyRow>

const columns = sql`id, name, environment, last4, scopes, expires_at, made_by, created_at, last_used_at, revoked_at`

export interface StoredApiKey {
  readonly id: ApiKeyId
  readonly environment: Environment
  readonly name: string
  readonly keyHash: Uint8Array
  readonly last4: string
  readonly createdBy: AccountId
  readonly createdAt: Date
  readonly scopes: readonly Scope[] | null
  readonly expiresAt: Date | null
  /** The keys by which it was made, its own maker last. */
  readonly makers: readonly ApiKeyId[]
}

export async function insertApiKey(tx: Tx, organisationId: OrganisationId, key: StoredApiKey): Promise<void> {
  await tx.run(sql`
    insert into api_keys (id, organisation_id, environment, name, key_hash, last4, created_by, created_at, scopes, expires_at,
      made_by_keys, made_by)
    values (${key.id}, ${organisationId}, ${key.environment}, ${key.name}, ${key.keyHash}, ${key.last4}, ${key.createdBy}, ${key.createdAt},
      ${key.scopes}::text[], ${key.expiresAt}, ${key.makers}::text[], ${key.makers.at(-1) ?? null})`)
}

/** A key is valid until it is revoked or expires. */
function isValid(now: Date): Sql {
  return sql`revoked_at is null and coalesce(expires_at, 'infinity') > ${now}`
}

/** Counts an environment's valid keys; the caller has locked the organisation, so that the count stays true. */
export async function countValidKeys(tx: Tx, { organisationId, environment }: Tenant, now: Date): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from api_keys
    where organisation_id = ${organisationId} and environment = ${environment} and ${isValid(now)}`,
  )
  return Number(count)
}

const Maker = z.object({
  scopes: z.array(z.enum(scopes)).nullable(),
  expiresAt: z.date().nullable(),
  makers: z.array(id('key')),
})
export type Maker = z.output<typeof Maker>

/**
 * Returns the calling key's limits and the makers of a key that it makes, itself last; undefined if it is not valid any more. It stays
 * valid until the transaction ends. Makers that were revoked before `forgottenBefore` are left out.
 */
export function lockMaker(
  tx: Tx,
  tenant: Tenant,
  {
    apiKeyId,
    now,
    forgottenBefore,
  }: { readonly apiKeyId: ApiKeyId; readonly now: Date; readonly forgottenBefore: Date },
): Promise<Maker | undefined> {
  return tx.maybeOne(
    Maker,
    sql`
    select scopes, expires_at, array(
        select m.id from unnest(k.made_by_keys) with ordinality as made (id, place) join api_keys m on m.id = made.id
        where m.revoked_at is null or m.revoked_at > ${forgottenBefore} order by made.place
      ) || k.id as makers
    from api_keys k
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${apiKeyId} and ${isValid(now)}
    for share of k`,
  )
}

const MadeKeyRow = ApiKeyRow.extend({ organisationId: id('org') })
export type MadeKeyRow = z.output<typeof MadeKeyRow>

/**
 * Returns the valid keys that this key made, and those that they made. It searches across organisations, because a key also makes the first key of an
 * organisation that it creates. With `revoker`, an organisation, only those of organisations whose quotas count for the same account, which
 * owns them: an organisation that has changed its owner is excluded. There are few: valid keys are limited, and so are organisations of an account.
 */
export function listKeysMadeBy(
  db: Queryable,
  {
    apiKeyId,
    now,
    revoker,
  }: { readonly apiKeyId: ApiKeyId; readonly now: Date; readonly revoker: OrganisationId | undefined },
): Promise<MadeKeyRow[]> {
  const isReached = revoker === undefined ? sql`true` : sql`organisation_id in (${listOfOneAccount(revoker)})`
  return db.many(
    MadeKeyRow,
    sql`
    select ${columns}, organisation_id from api_keys
    where made_by_keys @> array[${apiKeyId}::text] and ${isReached} and ${isValid(now)}
    order by id desc`,
  )
}

function listOfOneAccount(organisationId: OrganisationId): Sql {
  return sql`
    select ${organisationId}::text union
    select other.id from organisations as own join organisations as other on other.quota_account_id = own.quota_account_id
    join members as owner on owner.organisation_id = other.id and owner.account_id = other.quota_account_id
      and owner.role = 'owner' and owner.accepted_at is not null
    where own.id = ${organisationId}`
}

/** Whether the organisation has or had a live key. */
export async function hadLiveKey(tx: Tx, organisationId: OrganisationId): Promise<boolean> {
  const { exists } = await tx.one(
    z.object({ exists: z.boolean() }),
    sql`select exists (select from api_keys where organisation_id = ${organisationId} and environment = 'live') as exists`,
  )
  return exists
}

/** Returns the valid keys of an organisation. There are few: valid keys are limited. */
export function listValidKeys(db: Queryable, organisationId: OrganisationId, now: Date): Promise<ApiKeyRow[]> {
  return db.many(
    ApiKeyRow,
    sql`
    select ${columns} from api_keys
    where organisation_id = ${organisationId} and environment in ('test', 'live') and ${isValid(now)} order by id desc`,
  )
}

/** Returns the organisation of a key. It searches across organisations, for the operator. */
export async function findOrganisationOfKey(db: Queryable, apiKeyId: ApiKeyId): Promise<OrganisationId | undefined> {
  const row = await db.maybeOne(
    z.object({ organisationId: id('org') }),
    sql`select organisation_id from api_keys where id = ${apiKeyId}`,
  )
  return row?.organisationId
}

/** The keys that a caller may list and revoke: those of its environment; for the operator those of both. */
export type KeyReach = Pick<Tenant, 'organisationId'> & Partial<Pick<Tenant, 'environment'>>

function inReach({ organisationId, environment }: KeyReach): Sql {
  return environment === undefined
    ? sql`organisation_id = ${organisationId} and environment in ('test', 'live')`
    : sql`organisation_id = ${organisationId} and environment = ${environment}`
}

/** Returns keys, newest first, including revoked ones, one more than the limit. */
export function listApiKeys(
  db: Queryable,
  own: KeyReach,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<ApiKeyRow>> {
  return listRows(
    db,
    ApiKeyRow,
    page.limit,
    sql`
    select ${columns} from api_keys
    where ${inReach(own)} and ${isBelow(sql`id`, page.after)}
    order by id desc`,
  )
}

export function findApiKey(db: Queryable, own: KeyReach, apiKeyId: ApiKeyId): Promise<ApiKeyRow | undefined> {
  return db.maybeOne(ApiKeyRow, sql`select ${columns} from api_keys where ${inReach(own)} and id = ${apiKeyId}`)
}

/**
 * Revokes keys; rows are locked in one order, as `markUsed` does. A revoked key makes none, so its row forgets its makers: it is stored forever,
 * and its makers may be hundreds.
 */
export async function markRevoked(
  tx: Tx,
  { organisationId }: Pick<Tenant, 'organisationId'>,
  apiKeyIds: readonly ApiKeyId[],
  revokedAt: Date,
): Promise<void> {
  await tx.run(sql`
    with locked as (
      select id from api_keys where organisation_id = ${organisationId} and id = any(${apiKeyIds}::text[]) order by id for no key update)
    update api_keys set revoked_at = ${revokedAt}, made_by_keys = '{}' where id in (select id from locked) and revoked_at is null`)
}

const LiveKey = z.object({
  keyHash: z.instanceof(Uint8Array),
  apiKeyId: id('key'),
  organisationId: id('org'),
  environment: EnvironmentName,
  shareOwner: z.string(),
  scopes: z.array(z.enum(scopes)).nullable(),
  isSuspended: z.boolean(),
})

/** Returns the valid keys with these hashes. It searches across organisations, because it finds the organisation. */
export function listKeysByHash(
  db: Queryable,
  hashes: readonly Uint8Array[],
  now: Date,
): Promise<z.output<typeof LiveKey>[]> {
  return db.many(
    LiveKey,
    sql`
    select key_hash, id as api_key_id, organisation_id, environment, ${shareOwnerSql(sql`api_keys.organisation_id`)} as share_owner, scopes,
      (select suspended_at is not null from organisations where organisations.id = api_keys.organisation_id) as is_suspended
    from api_keys where key_hash = any(${hashes}::bytea[]) and ${isValid(now)}`,
  )
}

/** Returns those of the keys that are not valid. It searches across organisations, as the lookup by hash does. */
export async function listEnded(db: Queryable, apiKeyIds: readonly ApiKeyId[], now: Date): Promise<ApiKeyId[]> {
  const rows = await db.many(
    z.object({ id: id('key') }),
    sql`select id from api_keys where id = any(${apiKeyIds}::text[]) and not (${isValid(now)})`,
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
