import { composeWebhookSecret } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx, Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { OrganisationId } from '../../platform/ids.ts'
import { refuseEndedCaller } from '../callers/index.ts'
import { fail } from './errors.ts'
import type { WebhookWithSecret } from './schema.ts'
import { insertSecret, lockWebhook, retireSecrets, type WebhookId } from './store.ts'

const secretBytes = 32
const overlapMs = 86_400_000
/** Maximum number of active signing secrets, because receivers check a limited number of signatures. */
const secretsMax = 5

/** Creates a secret that signs from now on and returns it; no other response shows it. The caller has locked the webhook. */
export async function makeSecret(
  tx: Tx,
  ctx: Pick<Ctx, 'random' | 'sealer' | 'tenant'>,
  webhookId: WebhookId,
): Promise<string> {
  const secret = composeWebhookSecret(ctx.random.bytes(secretBytes))
  const sealed = ctx.sealer.seal(Buffer.from(secret), placeOf(webhookId, ctx.tenant.organisationId))
  await insertSecret(tx, webhookId, sealed)
  return secret
}

/** Returns the secret's text for signing. Throws if the sealed bytes belong to another webhook. */
export function openSecret(
  { sealer }: Pick<Deps, 'sealer'>,
  sealed: Uint8Array,
  of: { readonly webhookId: WebhookId; readonly organisationId: OrganisationId },
): string {
  return Buffer.from(sealer.open(sealed, placeOf(of.webhookId, of.organisationId))).toString('utf8')
}

/**
 * Creates a new secret. The old one also signs for 24 hours, so that a receiver can switch without missing anything; of many
 * rotations in a day the newest few sign.
 */
export function rotateSecret(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'db' | 'person' | 'random' | 'sealer' | 'tenant'>,
  webhookId: WebhookId,
): Promise<WebhookWithSecret> {
  return ctx.db.tx(async (tx) => {
    const webhook = await lockWebhook(tx, ctx.tenant, webhookId)
    if (webhook === undefined) throw fail('webhook-not-found')
    await refuseEndedCaller(ctx, tx, 'admin')
    const now = ctx.clock.now()
    await retireSecrets(tx, webhookId, {
      now,
      retiresAt: instantOf(now.getTime() + overlapMs),
      keptMax: secretsMax - 1,
    })
    const secret = await makeSecret(tx, ctx, webhookId)
    await ctx.audit(tx, { action: 'webhooks.rotateSecret', target: webhookId })
    return { ...webhook, secret }
  })
}

function placeOf(webhookId: WebhookId, organisationId: OrganisationId): string {
  return `webhook-secret|${organisationId}|${webhookId}`
}
