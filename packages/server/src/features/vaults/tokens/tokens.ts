import { hash } from 'node:crypto'
import type { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import { callerId } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { type Id, newId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { openCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { fail } from '../errors.ts'
import type { Ctx, Deps } from '../ports.ts'
import type { VaultId } from '../schema.ts'
import { findVault } from '../store.ts'
import { lockPresent } from '../vault.ts'
import { type NewVaultToken, ticketSeconds, tokenSeconds, type VaultToken } from './schema.ts'
import {
  countTokens,
  deleteExpiredTokens,
  findTokenById,
  insertToken,
  type ListedToken,
  listTokens,
  markTokensRevoked,
} from './store.ts'

const tokenBytes = 32

/**
 * Creates a token that reads only one vault, its files and its stream, or a ticket for one stream. It has 256 random bits, of
 * which only the hash is stored. It never outlives the vault's present end.
 */
export function createVaultToken(ctx: Ctx, vaultId: VaultId, request: NewVaultToken): Promise<VaultToken> {
  const token = `vat_${Buffer.from(ctx.random.bytes(tokenBytes)).toString('base64url')}`
  return ctx.db.tx(async (tx) => {
    const vault = await lockPresent(tx, ctx, vaultId)
    await refuseTooMany(ctx, tx, vaultId)
    const createdAt = ctx.clock.now()
    const seconds = request.kind === 'ticket' ? ticketSeconds : (request.expiresIn ?? tokenSeconds.byDefault)
    const wanted = instantOf(createdAt.getTime() + seconds * 1_000)
    const expiresAt = vault.expiresAt !== null && vault.expiresAt < wanted ? vault.expiresAt : wanted
    const id = newId('vat', ctx)
    const row = { id, kind: request.kind, vaultId, expiresAt, createdAt, madeBy: callerId(ctx.actor) }
    const end = await insertToken(tx, ctx.tenant, { ...row, tokenHash: tokenHashOf(token) })
    const details = { vaultId, kind: request.kind, expiresAt: end.toISOString() }
    if (isRecorded(request)) await ctx.audit(tx, { action: 'vaults.tokens.create', target: id, details })
    return { id, token, vaultId, expiresAt: end }
  })
}

/** Whether the audit log has it: a ticket opens one stream within a minute, and each viewer needs one for each connection. */
export function isRecorded({ kind }: Pick<NewVaultToken, 'kind'>): boolean {
  return kind === 'token'
}

/** Refuses one more token than a vault may have at a time. The vault's row must be locked. */
async function refuseTooMany(ctx: Pick<Ctx, 'clock' | 'vaultTokensMax'>, tx: Tx, vaultId: VaultId): Promise<void> {
  const [max, now] = [ctx.vaultTokensMax, ctx.clock.now()]
  const { count, firstEnd } = await countTokens(tx, { vaultId, now, max })
  if (count < max) return
  throw failPlatform('rate-limit-exceeded', {
    detail: `The vault has ${max} valid tokens and unused tickets, as many as a vault may have. Revoke some, or wait until one expires.`,
    retryAfterSeconds: Math.max(1, Math.ceil(((firstEnd ?? now).getTime() - now.getTime()) / 1_000)),
  })
}

export async function pageOfTokens(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  vaultId: VaultId,
  query: z.output<typeof PageQuery>,
): Promise<Page<ListedToken>> {
  const { db, tenant, clock } = ctx
  const now = clock.now()
  if ((await findVault(db, tenant, vaultId, now)) === undefined) throw fail('vault-not-found')
  const page = { vaultId, now, limit: query.limit, after: openCursor(query.cursor) }
  return pageOf(await listTokens(db, tenant, page), query.limit, (row) => row.id)
}

/** Revokes a vault's token, or all of them. Their streams and file links end too. Returns when the witness covers it. Revoking again changes nothing. */
export function revokeTokens(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'tenant' | 'witness'>,
  vaultId: VaultId,
  tokenId?: Id<'vat'>,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockPresent(tx, ctx, vaultId)
    const revoked = await markTokensRevoked(tx, ctx.tenant, { vaultId: vault.id, tokenId, now: ctx.clock.now() })
    tx.beforeReturn(revoked.length === 0 ? ctx.witness.coverRepetition : ctx.witness.cover)
    for (const { id } of revoked.filter(isRecorded))
      await ctx.audit(tx, { action: 'vaults.tokens.revoke', target: id, details: { vaultId } })
    if (tokenId === undefined || revoked.length > 0) return
    const known = await findTokenById(tx, ctx.tenant, tokenId)
    if (known?.vaultId !== vaultId) throw fail('vault-token-not-found')
  })
}

/** Returns the hash that is stored of a token's text. */
export function tokenHashOf(token: string): Uint8Array {
  return hash('sha256', token, 'buffer')
}

/** Deletes expired tokens. Running it again is harmless. */
export const deleteExpiredVaultTokens: RecurringTask<Deps> = {
  name: 'vaults.sweep-tokens',
  everyMs: 600_000,
  run: async (ctx) => {
    await deleteExpiredTokens(ctx, ctx.clock.now())
  },
}
