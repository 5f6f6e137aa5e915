import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../platform/db/page.ts'
import { type Id, id } from '../../platform/ids.ts'

export type WebhookId = Id<'wh'>

export const WebhookRow = z.object({
  id: id('wh'),
  url: z.string(),
  events: z.array(z.string()),
  isActive: z.boolean(),
  createdAt: z.date(),
})
export type WebhookRow = z.output<typeof WebhookRow>

const columns = sql`id, url, events, is_active, created_at`

/** Writes a webhook and its empty queue. */
export async function insertWebhook(tx: Tx, tenant: Tenant, webhook: WebhookRow): Promise<void> {
  await tx.run(sql`
    insert into webhooks (id, organisation_id, environment, url, events, is_active, created_at)
    values (${webhook.id}, ${tenant.organisationId}, ${tenant.environment}, ${webhook.url}, ${[...webhook.events]}, ${webhook.isActive},
      ${webhook.createdAt})`)
  await tx.run(
    sql`insert into webhook_queues (webhook_id, organisation_id) values (${webhook.id}, ${tenant.organisationId})`,
  )
}

export function findWebhook(db: Queryable, tenant: Tenant, webhookId: WebhookId): Promise<WebhookRow | undefined> {
  return db.maybeOne(
    WebhookRow,
    sql`
    select ${columns} from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${webhookId} and deleted_at is null`,
  )
}

/**
 * Locks the webhook's queue and then its row until the transaction ends. No delivery for it is written meanwhile, so that
 * ending its pending deliveries ends all of them. All callers that lock both use this order, so that they do not deadlock.
 */
export async function lockWebhook(tx: Tx, tenant: Tenant, webhookId: WebhookId): Promise<WebhookRow | undefined> {
  await tx.run(sql`
    select 1 from webhook_queues q join webhooks w on w.id = q.webhook_id
    where w.organisation_id = ${tenant.organisationId} and w.environment = ${tenant.environment} and q.webhook_id = ${webhookId}
    for update of q`)
  return tx.maybeOne(
    WebhookRow,
    sql`
    select ${columns} from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${webhookId} and deleted_at is null
    for no key update`,
  )
}

/** Returns webhooks, newest first, one more than the limit. */
export function listWebhooks(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<WebhookRow>> {
  return listRows(
    db,
    WebhookRow,
    page.limit,
    sql`
    select ${columns} from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null
      and ${isBelow(sql`id`, page.after)}
    order by id desc`,
  )
}

/** Returns the webhooks that are on, ordered by id, so that two transactions that lock them do not deadlock. */
export function listActive(tx: Tx, tenant: Tenant): Promise<{ readonly id: WebhookId }[]> {
  return tx.many(
    WebhookRow.pick({ id: true }),
    sql`
    select id from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null and is_active
    order by id`,
  )
}

/** Writes the fields that may change. A webhook that is turned on again starts without a history of failures. */
export async function updateWebhook(tx: Tx, tenant: Tenant, webhook: WebhookRow): Promise<void> {
  const { id: webhookId, url, events, isActive } = webhook
  await tx.run(sql`
    update webhooks set url = ${url}, events = ${[...events]}, is_active = ${isActive},
      failing_since = case when is_active then failing_since end
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${webhookId}`)
}

/** Turns a webhook off. Returns false if it was already off. */
export async function markDisabled(tx: Tx, tenant: Tenant, webhookId: WebhookId): Promise<boolean> {
  const disabled = await tx.run(sql`
    update webhooks set is_active = false
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${webhookId}
      and is_active and deleted_at is null`)
  return disabled === 1
}

/** Marks a webhook as deleted and deletes its secrets. The row stays until its deliveries are deleted. */
export async function markDeleted(tx: Tx, tenant: Tenant, webhookId: WebhookId, deletedAt: Date): Promise<void> {
  await tx.run(sql`
    update webhooks set deleted_at = ${deletedAt}, is_active = false
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${webhookId}`)
  await tx.run(sql`delete from webhook_secrets where webhook_id = ${webhookId}`)
}

/** Counts the webhooks from their rows. */
export function countingWebhooks(tenant: Tenant): Sql {
  return sql`
    select count(*) from webhooks
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and deleted_at is null`
}

/** Stores a new secret as the first to sign. The caller has locked the webhook. */
export async function insertSecret(tx: Tx, webhookId: WebhookId, sealed: Uint8Array): Promise<void> {
  await tx.run(sql`insert into webhook_secrets (webhook_id, secret) values (${webhookId}, ${sealed})`)
}

/** Lets the current secret sign until `retiresAt`. Deletes the secrets that no longer sign, and of the others all but the newest few. */
export async function retireSecrets(
  tx: Tx,
  webhookId: WebhookId,
  times: { readonly now: Date; readonly retiresAt: Date; readonly keptMax: number },
): Promise<void> {
  await tx.run(sql`
    update webhook_secrets set retires_at = ${times.retiresAt} where webhook_id = ${webhookId} and retires_at is null`)
  await tx.run(sql`
    delete from webhook_secrets
    where webhook_id = ${webhookId} and (retires_at <= ${times.now} or sequence not in (
      select sequence from webhook_secrets where webhook_id = ${webhookId} order by sequence desc limit ${times.keptMax}))`)
}
