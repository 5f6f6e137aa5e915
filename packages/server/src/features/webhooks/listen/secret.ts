import { composeWebhookSecret } from '@purser/protocol'
import { callerId } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { AccountId, ApiKeyId } from '../../../platform/ids.ts'
import type { Ctx } from '../ports.ts'
import type { ListenerSecret } from './schema.ts'
import { findSecret, insertSecretOnce } from './store.ts'

const secretBytes = 32

/** Returns the secret that signs for the listeners of the caller, an API key or a person: created the first time, then always the same. */
export async function listenerSecret(ctx: Ctx): Promise<ListenerSecret> {
  const apiKeyId = callerId(ctx.actor)
  const sealed = (await findSecret(ctx.db, ctx.tenant, apiKeyId)) ?? (await ctx.db.tx((tx) => make(tx, ctx, apiKeyId)))
  return { secret: Buffer.from(ctx.sealer.open(sealed, placeOf(ctx, apiKeyId))).toString('utf8') }
}

/** Creates the secret. Of two parallel creations the first is stored, and both return it. */
async function make(
  tx: Tx,
  ctx: Pick<Ctx, 'audit' | 'clock' | 'random' | 'sealer' | 'tenant'>,
  apiKeyId: ApiKeyId | AccountId,
): Promise<Uint8Array> {
  const secret = composeWebhookSecret(ctx.random.bytes(secretBytes))
  const sealed = ctx.sealer.seal(Buffer.from(secret), placeOf(ctx, apiKeyId))
  const isFirst = await insertSecretOnce(tx, ctx.tenant, { apiKeyId, sealed, createdAt: ctx.clock.now() })
  if (isFirst) await ctx.audit(tx, { action: 'events.listener', target: apiKeyId })
  const kept = await findSecret(tx, ctx.tenant, apiKeyId)
  if (kept === undefined) throw new Error('the secret of a listener was not kept')
  return kept
}

function placeOf({ tenant }: Pick<Ctx, 'tenant'>, apiKeyId: ApiKeyId | AccountId): string {
  return `listener-secret|${tenant.organisationId}|${apiKeyId}`
}
