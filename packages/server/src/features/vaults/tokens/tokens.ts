import { hash } from 'node:crypto'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { newId } from '../../../platform/ids.ts'
import { lockPresent, type VaultId } from '../vault.ts'
import { type NewVaultToken, ticketSeconds, tokenSeconds, type VaultToken } from './schema.ts'
import { insertToken } from './store.ts'

const tokenBytes = 32

/**
 * Creates a token that reads only one vault, its files and its stream, or a ticket for one stream. It has 256 random bits, of
 * which only the hash is stored. It never outlives the vault's present end.
 */
export function createVaultToken(ctx: Ctx, vaultId: VaultId, request: NewVaultToken): Promise<VaultToken> {
  const token = `vat_${Buffer.from(ctx.random.bytes(tokenBytes)).toString('base64url')}`
  return ctx.db.tx(async (tx) => {
    const vault = await lockPresent(tx, ctx, vaultId)
    const createdAt = ctx.clock.now()
    const seconds = request.kind === 'ticket' ? ticketSeconds : (request.expiresIn ?? tokenSeconds.byDefault)
    const wanted = instantOf(createdAt.getTime() + seconds * 1_000)
    const expiresAt = vault.expiresAt !== null && vault.expiresAt < wanted ? vault.expiresAt : wanted
    const row = { id: newId('vat', ctx), kind: request.kind, vaultId, expiresAt, createdAt }
    await insertToken(tx, ctx.tenant, { ...row, tokenHash: tokenHashOf(token) })
    return { token, vaultId, expiresAt }
  })
}

/** Returns the hash that is stored of a token's text. */
export function tokenHashOf(token: string): Uint8Array {
  return hash('sha256', token, 'buffer')
}
