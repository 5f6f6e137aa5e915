import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { deleteExpired, type Sweep } from '../../../platform/db/delete-expired.ts'
import { isBelow } from '../../../platform/db/page.ts'
import { type AccountId, type ApiKeyId, type Id, id } from '../../../platform/ids.ts'
import { shareOwnerSql } from '../../plans/index.ts'
import type { VaultId } from '../schema.ts'
import { TokenKind } from './schema.ts'

export interface NewTokenRow {
  readonly id: Id<'vat'>
  readonly tokenHash: Uint8Array
  readonly kind: TokenKind
  readonly vaultId: VaultId
  readonly expiresAt: Date
  readonly createdAt: Date
  readonly madeBy: ApiKeyId | AccountId
}

/** Writes a token, which ends with the key that makes it at the latest; only the hash of its text is stored. Returns its end. */
export async function insertToken(tx: Tx, tenant: Tenant, token: NewTokenRow): Promise<Date> {
  const { id, tokenHash, kind, vaultId, expiresAt, createdAt, madeBy } = token
  const stored = await tx.one(
    z.object({ expiresAt: z.date() }),
    sql`
    insert into vault_tokens (id, token_hash, kind, organisation_id, environment, vault_id, expires_at, created_at, made_by)
    values (${id}, ${tokenHash}, ${kind}, ${tenant.organisationId}, ${tenant.environment}, ${vaultId},
      least(${expiresAt}::timestamptz, (select k.expires_at from api_keys k where k.id = ${madeBy})), ${createdAt}, ${madeBy})
    returning expires_at`,
  )
  return stored.expiresAt
}

const Counted = z.object({ count: z.bigint(), firstEnd: z.date().nullable() })

/**
 * Returns how many valid tokens and unused tickets a vault has, and when the first of them expires. Below `max` it counts also those whose maker's access
 * ended, which only a read of each maker shows. It reads each maker once, however many tokens it made. A used ticket opens nothing more: open streams
 * have a limit of their own.
 */
export async function countTokens(
  db: Queryable,
  { vaultId, now, max }: { readonly vaultId: VaultId; readonly now: Date; readonly max: number },
): Promise<z.output<typeof Counted>> {
  const count = sql`count(*) as count, min(expires_at) as first_end`
  const valid = sql`
    from vault_tokens where vault_id = ${vaultId} and revoked_at is null and opened_at is null and expires_at > ${now}`
  const all = await db.one(Counted, sql`select ${count} ${valid}`)
  if (all.count < max) return all
  return db.one(
    Counted,
    sql`
    select coalesce(sum(count), 0)::bigint as count, min(first_end) as first_end
    from (select made_by, organisation_id, environment, ${count} ${valid} group by made_by, organisation_id, environment) as vault_tokens
    where ${hasAccess(now)}`,
  )
}

const TokenRow = z.object({
  id: id('vat'),
  kind: TokenKind,
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  shareOwner: z.string(),
  vaultId: id('vlt'),
  expiresAt: z.date(),
})
export type TokenRow = z.output<typeof TokenRow>

const columns = sql`id, kind, organisation_id, environment, vault_id, expires_at, ${shareOwnerSql(sql`vault_tokens.organisation_id`)} as share_owner`

/** A token was not revoked, and its maker has access. */
function isGood(now: Date): Sql {
  return sql`revoked_at is null and ${hasAccess(now)}`
}

/** The key that made a token is valid, or the person who made it works in the vault's environment. */
function hasAccess(now: Date): Sql {
  return sql`not exists (
      select from api_keys k where k.id = vault_tokens.made_by and (k.revoked_at is not null or coalesce(k.expires_at, 'infinity') <= ${now}))
    and (vault_tokens.made_by is null or vault_tokens.made_by not like 'acc%' or exists (
      select from members m
      where m.organisation_id = vault_tokens.organisation_id and m.account_id = vault_tokens.made_by and m.accepted_at is not null
        and (m.is_live or vault_tokens.environment = 'test')))`
}

/** A token is good and its vault exists: the tokens of a deleted vault are deleted after it. */
function opensVault(now: Date): Sql {
  return sql`${isGood(now)} and exists (select from vaults v where v.id = vault_tokens.vault_id)`
}

/** Returns the tenant and the access of a token that opens its vault, by its hash. Its expiry is not compared. */
export function findToken(db: Queryable, tokenHash: Uint8Array, now: Date): Promise<TokenRow | undefined> {
  return db.maybeOne(
    TokenRow,
    sql`select ${columns} from vault_tokens where token_hash = ${tokenHash} and ${opensVault(now)}`,
  )
}

/** The ids of tokens, of any tenant, that are no longer valid for their vault. Omits expired tokens whose row is already deleted. */
export async function listEndedTokens(db: Queryable, ids: readonly Id<'vat'>[], now: Date): Promise<Id<'vat'>[]> {
  const rows = await db.many(
    z.object({ id: id('vat') }),
    sql`select id from vault_tokens where id = any(${ids}::text[]) and not (${opensVault(now)})`,
  )
  return rows.map((row) => row.id)
}

export const ListedToken = z.object({
  id: id('vat'),
  kind: TokenKind,
  madeBy: z.string().nullable(),
  expiresAt: z.date(),
  createdAt: z.date(),
})
export type ListedToken = z.output<typeof ListedToken>

/** Returns a vault's good tokens that have not expired, newest first, one more than the limit. */
export function listTokens(
  db: Queryable,
  tenant: Tenant,
  { vaultId, now, limit, after }: { vaultId: VaultId; now: Date; limit: number; after: string | undefined },
): Promise<ListedToken[]> {
  return db.many(
    ListedToken,
    sql`
    select id, kind, made_by, expires_at, created_at from vault_tokens
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}
      and expires_at > ${now} and ${isBelow(sql`id`, after)} and ${isGood(now)}
    order by id desc limit ${limit + 1}`,
  )
}

const RevokedRow = z.object({ id: id('vat'), kind: TokenKind })

/** Revokes one of a vault's tokens, or all of them; returns those that were not revoked before. */
export function markTokensRevoked(
  tx: Tx,
  tenant: Tenant,
  { vaultId, tokenId, now }: { vaultId: VaultId; tokenId: Id<'vat'> | undefined; now: Date },
): Promise<z.output<typeof RevokedRow>[]> {
  return tx.many(
    RevokedRow,
    sql`
    update vault_tokens set revoked_at = ${now}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and vault_id = ${vaultId}
      and (${tokenId ?? null}::text is null or id = ${tokenId ?? null}) and revoked_at is null and expires_at > ${now}
    returning id, kind`,
  )
}

export function findTokenById(db: Queryable, tenant: Tenant, tokenId: Id<'vat'>): Promise<TokenRow | undefined> {
  return db.maybeOne(
    TokenRow,
    sql`
    select ${columns} from vault_tokens
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${tokenId}`,
  )
}

/**
 * Uses a vault's ticket up, if it is good, unused and not expired: of any number of requests at once one succeeds. Its stream may be open
 * until `streamEnd`.
 */
export function openTicketRow(
  db: Queryable,
  { tokenHash, vaultId, now, streamEnd }: { tokenHash: Uint8Array; vaultId: VaultId; now: Date; streamEnd: Date },
): Promise<TokenRow | undefined> {
  return db.maybeOne(
    TokenRow,
    sql`
    update vault_tokens set opened_at = ${now}, expires_at = ${streamEnd}
    where token_hash = ${tokenHash} and vault_id = ${vaultId} and kind = 'ticket' and opened_at is null and expires_at > ${now}
      and ${opensVault(now)}
    returning ${columns}`,
  )
}

/** Deletes tokens of any tenant that expired before an instant; an open stream stores its own end. */
export function deleteExpiredTokens(sweep: Sweep, before: Date): Promise<number> {
  return deleteExpired(sweep, { from: sql`vault_tokens`, where: sql`expires_at < ${before}`, orderBy: sql`expires_at` })
}
