import { createHash } from 'node:crypto'
import { composeApiKey } from '@purser/protocol'
import type { z } from 'zod'
import { requireFresh } from '../../platform/access.ts'
import type { Ctx, Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
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
 * Creates a key of 256 random bits and stores only its hash, so that reading the database grants no access. The text in the
 * response exists nowhere else.
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

/** Creates a key for the caller's organization. A test key cannot create live keys: it must not give access to real money. */
export function createApiKey(ctx: Ctx, request: KeyRequest): Promise<NewApiKey> {
  return ctx.db.tx(async (tx) => {
    refuseEnvironment(ctx, request.environment)
    const { id: createdBy } = await callersAccount(ctx, tx)
    return makeApiKey(ctx, tx, ctx.tenant.organisationId, { ...request, createdBy })
  })
}

/** A person may make the first live key, from either environment, with fresh authentication. */
function refuseEnvironment({ person, tenant, environments, clock }: Ctx, environment: Environment): void {
  if (environment === 'test') return
  if (person === undefined && tenant.environment === 'test') throw fail('environment-not-allowed')
  if (!environments.includes(environment)) throw failPlatform('environment-not-served')
  requireFresh({ person, clock })
}

/** Creates a key for an organization as the operator; it counts as created by the owner who joined first. */
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
 * Revokes a key for good. Every request reads its key's row, so once this has committed no process accepts it. Revoking a revoked
 * key changes nothing.
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
