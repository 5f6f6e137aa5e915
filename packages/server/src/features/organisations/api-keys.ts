import { createHash } from 'node:crypto'
import { composeApiKey } from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx, Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type AccountId, type ApiKeyId, newId, type OrganisationId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { type Acting, auditIn } from './acting.ts'
import { callersAccount } from './callers-account.ts'
import { fail } from './errors.ts'
import { type ApiKeyRow, insertApiKey, listApiKeys, lockApiKey, markRevoked } from './key-store.ts'
import { findFirstOwner } from './member-store.ts'
import type { NewApiKey } from './schema.ts'
import { lockOrganisation } from './store.ts'

interface KeyRequest {
  readonly name: string
  readonly environment: Environment
}

/**
 * Makes a key of 256 random bits and stores only its hash, so that reading the database opens nothing. The text in the
 * answer exists nowhere else.
 */
export async function makeApiKey(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  request: KeyRequest & { readonly createdBy: AccountId },
): Promise<NewApiKey> {
  const { name, environment, createdBy } = request
  const key = composeApiKey(environment, ctx.random.bytes(32))
  const keyHash = createHash('sha256').update(key).digest()
  const made = { id: newId('key', ctx), name, environment, createdAt: ctx.clock.now() }
  await insertApiKey(tx, organisationId, { ...made, keyHash, last4: key.slice(-4), createdBy })
  const details = { name, environment, createdBy }
  await auditIn(ctx, tx, organisationId, environment, {
    action: 'organisations.apiKeys.create',
    target: made.id,
    details,
  })
  return { ...made, key }
}

/** A new key for the caller's organisation. A test key cannot make live ones: it must not be a way to real money. */
export function createApiKey(ctx: Ctx, request: KeyRequest): Promise<NewApiKey> {
  return ctx.db.tx(async (tx) => {
    if (ctx.tenant.environment === 'test' && request.environment === 'live') throw fail('environment-not-allowed')
    const { id: createdBy } = await callersAccount(ctx, tx)
    return makeApiKey(ctx, tx, ctx.tenant.organisationId, { ...request, createdBy })
  })
}

/** A key that the operator makes for an organisation; it counts as made by the owner who joined first. */
export function createKeyAsOperator(
  ctx: Acting,
  organisationId: OrganisationId,
  request: KeyRequest,
): Promise<NewApiKey> {
  return ctx.db.tx(async (tx) => {
    if ((await lockOrganisation(tx, organisationId)) === undefined) throw fail('organisation-not-found')
    const owner = await findFirstOwner(tx, organisationId)
    if (owner === undefined) throw new Error('an organisation has no owner')
    return makeApiKey(ctx, tx, organisationId, { ...request, createdBy: owner.accountId })
  })
}

export async function listKeys(ctx: Ctx, query: z.output<typeof PageQuery>): Promise<Page<ApiKeyRow>> {
  const { limit } = query
  const keys = await listApiKeys(ctx.db, ctx.tenant, { limit, after: openCursor(query.cursor) })
  return pageOf(keys, limit, (key) => key.id)
}

/**
 * Ends a key for good. Every request looks its key up, so once this has committed no process takes it again. Revoking a
 * revoked key changes nothing.
 */
export function revokeApiKey(ctx: Ctx, apiKeyId: ApiKeyId): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const key = await lockApiKey(tx, ctx.tenant, apiKeyId)
    if (key === undefined) throw fail('api-key-not-found')
    if (key.revokedAt !== null) return
    await markRevoked(tx, ctx.tenant, apiKeyId, ctx.clock.now())
    const entry = { action: 'organisations.apiKeys.revoke', target: apiKeyId, details: { name: key.name } }
    await auditIn(ctx, tx, ctx.tenant.organisationId, key.environment, entry)
  })
}
