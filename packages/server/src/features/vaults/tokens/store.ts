import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { type Id, id } from '../../../platform/ids.ts'
import type { VaultId } from '../vault.ts'
import { TokenKind } from './schema.ts'

export interface NewTokenRow {
  readonly id: Id<'vat'>
  readonly tokenHash: Uint8Array
  readonly kind: TokenKind
  readonly vaultId: VaultId
  readonly expiresAt: Date
  readonly createdAt: Date
}

/** Writes a token; only the hash of its text is stored. */
export async function insertToken(tx: Tx, tenant: Tenant, token: NewTokenRow): Promise<void> {
  const { id, tokenHash, kind, vaultId, expiresAt, createdAt } = token
  await tx.run(sql`
    insert into vault_tokens (id, token_hash, kind, organisation_id, environment, vault_id, expires_at, created_at)
    values (${id}, ${tokenHash}, ${kind}, ${tenant.organisationId}, ${tenant.environment}, ${vaultId}, ${expiresAt}, ${createdAt})`)
}

const TokenRow = z.object({
  id: id('vat'),
  kind: TokenKind,
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  vaultId: id('vlt'),
  expiresAt: z.date(),
})
export type TokenRow = z.output<typeof TokenRow>

const columns = sql`id, kind, organisation_id, environment, vault_id, expires_at`

/** Returns a token's tenant and access, by its hash. */
export function findToken(db: Queryable, tokenHash: Uint8Array): Promise<TokenRow | undefined> {
  return db.maybeOne(TokenRow, sql`select ${columns} from vault_tokens where token_hash = ${tokenHash}`)
}

export function findTokenById(db: Queryable, tenant: Tenant, tokenId: Id<'vat'>): Promise<TokenRow | undefined> {
  return db.maybeOne(
    TokenRow,
    sql`
    select ${columns} from vault_tokens
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${tokenId}`,
  )
}

/** Uses a vault's ticket up, if it exists, is unused and not expired: of any number of requests at once one succeeds. */
export function openTicketRow(
  db: Queryable,
  { tokenHash, vaultId, now }: { readonly tokenHash: Uint8Array; readonly vaultId: VaultId; readonly now: Date },
): Promise<TokenRow | undefined> {
  return db.maybeOne(
    TokenRow,
    sql`
    update vault_tokens set opened_at = ${now}
    where token_hash = ${tokenHash} and vault_id = ${vaultId} and kind = 'ticket' and opened_at is null and expires_at > ${now}
    returning ${columns}`,
  )
}

/** Deletes tokens of any tenant that expired before an instant; an open stream stores its own end. */
export function deleteExpiredTokens(db: Queryable, before: Date): Promise<number> {
  return db.run(sql`delete from vault_tokens where expires_at < ${before}`)
}
