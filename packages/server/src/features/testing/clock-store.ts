import type { Tenant } from '../../platform/ctx.ts'
import { type Sql, sql, type Tx } from '../../platform/db/db.ts'

/** No period of a policy counts uses that are older. */
const policyDaysMax = 32

/**
 * Makes due times and expiries of the tenant's test environment earlier by these seconds, and returns the numbers of rows. Tables are locked in the
 * order in which others lock them, and rows by id.
 */
export async function advanceDueTimes(
  tx: Tx,
  tenant: Tenant,
  { now, seconds }: { readonly now: Date; readonly seconds: number },
) {
  const own: Sql = sql`organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`
  const span: Sql = sql`${seconds}::integer * interval '1 second'`
  const sessions = await tx.run(sql`
    update sessions set expires_at = expires_at - ${span}
    where id in (select id from sessions where ${own} and expires_at > ${now} order by id for update)`)
  const vaults = await tx.run(sql`
    update vaults set expires_at = expires_at - ${span}, expiring_due = expiring_due - ${span}
    where id in (select id from vaults where ${own} and expires_at > ${now} order by id for update)`)
  const vaultTokens = await tx.run(sql`
    update vault_tokens set expires_at = expires_at - ${span}
    where id in (select id from vault_tokens where ${own} and expires_at > ${now} order by id for update)`)
  const approvals = await tx.run(sql`
    update movement_approvals set expires_at = expires_at - ${span}
    where id in (select id from movement_approvals where ${own} and status = 'waiting' order by id for update)`)
  const approvedPayments = await tx.run(sql`
    update wallet_payments set pay_until = pay_until - ${span}
    where transfer_id in (
      select transfer_id from wallet_payments
      where ${own} and draft is null and pay_until > ${now} order by transfer_id for update)`)
  const policyUses = await tx.run(sql`
    update policy_reservations set reserved_at = reserved_at - ${span}
    where subject_id in (
      select subject_id from policy_reservations
      where ${own} and released_at is null and reserved_at > ${now}::timestamptz - ${policyDaysMax} * interval '1 day'
      order by subject_id for update)`)
  return {
    sessions,
    vaults,
    vaultTokens,
    approvals: approvals + approvedPayments,
    policyUses,
    webhookDeliveries: await retrySooner(tx, own, span),
  }
}

/** Moves retries of webhooks, and how long their endpoints have failed. A queue that nobody serves is due with its first delivery. */
async function retrySooner(tx: Tx, own: Sql, span: Sql): Promise<number> {
  const ownWebhooks: Sql = sql`select id from webhooks where ${own}`
  await tx.run(sql`
    update webhook_queues set look_at = look_at - case when lease is null then ${span} else interval '0' end
    where webhook_id in (
      select webhook_id from webhook_queues where webhook_id in (${ownWebhooks}) order by webhook_id for update)`)
  await tx.run(sql`
    update webhooks set failing_since = failing_since - ${span}
    where id in (${ownWebhooks} and failing_since is not null order by id for no key update)`)
  return tx.run(sql`
    update webhook_deliveries set due_at = due_at - ${span}
    where id in (
      select id from webhook_deliveries where webhook_id in (${ownWebhooks}) and status = 'pending' order by id for no key update)`)
}
