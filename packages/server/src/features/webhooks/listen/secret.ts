import { composeWebhookSecret } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { ApiKeyId } from '../../../platform/ids.ts'
import type { ListenerSecret } from './schema.ts'
import { findSecret, insertSecretOnce } from './store.ts'

const secretBytes = 32

/** The key whose listeners are meant. Nothing but a key opens these operations. */
export function callingKey({ actor }: Ctx): ApiKeyId {
  if (actor.kind !== 'api-key') throw new Error('only a call with an API key can listen')
  return actor.apiKeyId
}

/** The secret that signs for the listeners of the calling key: made the first time, the same ever after. */
export async function listenerSecret(ctx: Ctx): Promise<ListenerSecret> {
  const apiKeyId = callingKey(ctx)
  const sealed = (await findSecret(ctx.db, ctx.tenant, apiKeyId)) ?? (await ctx.db.tx((tx) => make(tx, ctx, apiKeyId)))
  return { secret: Buffer.from(ctx.sealer.open(sealed, placeOf(ctx, apiKeyId))).toString('utf8') }
}

/** Of two that make one in the same instant the first is kept, and both answer it. */
async function make(tx: Tx, ctx: Ctx, apiKeyId: ApiKeyId): Promise<Uint8Array> {
  const secret = composeWebhookSecret(ctx.random.bytes(secretBytes))
  const sealed = ctx.sealer.seal(Buffer.from(secret), placeOf(ctx, apiKeyId))
  const isFirst = await insertSecretOnce(tx, ctx.tenant, { apiKeyId, sealed, createdAt: ctx.clock.now() })
  if (isFirst) await ctx.audit(tx, { action: 'events.listener', target: apiKeyId })
  const kept = await findSecret(tx, ctx.tenant, apiKeyId)
  if (kept === undefined) throw new Error('the secret of a listener was not kept')
  return kept
}

function placeOf({ tenant }: Ctx, apiKeyId: ApiKeyId): string {
  return `listener-secret|${tenant.organisationId}|${apiKeyId}`
}
