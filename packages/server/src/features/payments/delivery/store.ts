import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { idIn, idIs } from '../../../platform/db/page.ts'
import { id, type PaymentId } from '../../../platform/ids.ts'
import { paymentStatuses } from '../schema.ts'

/** The fields of verify from a caller that reports delivery; stored with the payment. */
export const PaymentDelivery = z.object({
  /** Content-Digest (RFC 9530) of the paid request's body, where the route binds it. */
  digest: z.string().nullable(),
  /** The authenticated `extra.challengeId` of the x402 offer that the payer accepted. */
  challengeId: z.string().nullable(),
})
export type PaymentDelivery = z.output<typeof PaymentDelivery>

/** The columns of a payment that a redemption reads. */
export const RedeemableRow = z.object({
  id: id('pay'),
  status: z.enum(paymentStatuses),
  protocolVersion: z.number().nullable(),
  claimKey: z.string().nullable(),
  challengeId: z.string().nullable(),
  paymentIdentifier: z.string().nullable(),
  payer: z.string().nullable(),
  resource: z.string().nullable(),
  method: z.string().nullable(),
  delivery: PaymentDelivery.nullable(),
  deliveredAt: z.date().nullable(),
  /** Milliseconds since settlement, by the database's clock; null if not settled. */
  settledMs: z.number().nullable(),
  /** Sum of the payment's refunds, in the token's smallest unit. */
  refundedRaw: StoredBigInt,
  redemptionToken: z.string().nullable(),
  /** Milliseconds until the current right to deliver ends, by the database's clock; null if no redemption was requested. */
  redemptionMs: z.number().nullable(),
  reruns: z.number(),
})
export type RedeemableRow = z.output<typeof RedeemableRow>

/**
 * Identifies a payment by its id or by its credential: the claim of an authorization or stub (version 1 of x402 does not name the
 * token), or the MPP challenge.
 */
export type PaymentKey =
  | { readonly id: PaymentId }
  | { readonly claimKeys: readonly string[] }
  | { readonly challengeId: string }

const IdRow = z.object({ id: z.string() })

/**
 * Locks a payment until the transaction ends. Redemptions and refunds take this lock first, so that each sees what the other did.
 */
export async function lockRedeemable(tx: Tx, tenant: Tenant, key: PaymentKey): Promise<RedeemableRow | undefined> {
  const [row] = await tx.many(
    RedeemableRow,
    sql`
    select id, status, protocol_version, claim_key, challenge_id, payment_identifier, payer, resource, method, delivery, delivered_at,
      (extract(epoch from clock_timestamp() - settled_at) * 1000)::float8 as settled_ms, refunded_raw, redemption_token, (extract(epoch from redemption_until - clock_timestamp()) * 1000)::float8 as redemption_ms, reruns
    from payments
    where ${named(key)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
    order by id limit 1 for no key update`,
  )
  return row
}

function named(key: PaymentKey): Sql {
  if ('id' in key) return sql`${idIs(key.id)}`
  const claims =
    'claimKeys' in key
      ? sql`claim_hash = any(array(select claim_hash(name) from unnest(${key.claimKeys}::text[]) as name))`
      : sql`challenge_hash = claim_hash(${key.challengeId})`
  return sql`id = any(array(select payment_id from payment_claims where ${claims}))`
}

/** Starts the grace period of a redemption: until it ends the first handler may still deliver its response. */
export async function announceRedemption(tx: Tx, paymentId: PaymentId, graceMs: number): Promise<void> {
  await tx.run(sql`
    update payments set redemption_until = clock_timestamp() + ${graceMs} * interval '1 ms' where ${idIs(paymentId)}`)
}

/** A lease of the right to deliver the response of a payment. */
export interface RedemptionLease {
  readonly token: string
  readonly leaseMs: number
  readonly isRerun: boolean
}

/** Gives the owner of the token the right to deliver the response. */
export async function grantRedemption(tx: Tx, paymentId: PaymentId, lease: RedemptionLease): Promise<void> {
  await tx.run(sql`
    update payments set redemption_token = ${lease.token}, reruns = reruns + ${lease.isRerun ? 1 : 0},
      redemption_until = clock_timestamp() + ${lease.leaseMs} * interval '1 ms'
    where ${idIs(paymentId)}`)
}

/** Marks a payment as delivered if the token still has the right and nothing was refunded. Returns the number of changed rows. */
export function markRedeemed(
  tx: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
  redeemed: { readonly token: string; readonly at: Date },
): Promise<number> {
  return tx.run(sql`
    update payments set delivered_at = ${redeemed.at}, redeemed_at = ${redeemed.at}
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
      and redemption_token = ${redeemed.token} and delivered_at is null and refunded_raw = 0`)
}

/**
 * Undoes the delivery of a payment for the token that has the right to deliver it, finished or not. Returns the number of changed
 * rows.
 */
export function markUndelivered(tx: Queryable, tenant: Tenant, paymentId: PaymentId, token: string): Promise<number> {
  return tx.run(sql`
    update payments set delivered_at = null, redeemed_at = null, redemption_token = null, redemption_until = clock_timestamp()
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
      and redemption_token = ${token}`)
}

/**
 * Marks payments as delivered. Payments that already are, and payments of callers that do not report delivery, do not change.
 * Returns the changed ids.
 */
export async function markDelivered(
  tx: Queryable,
  tenant: Tenant,
  paymentIds: readonly PaymentId[],
  at: Date,
): Promise<ReadonlySet<string>> {
  const rows = await tx.many(
    IdRow,
    sql`
    update payments set delivered_at = ${at}
    where ${idIn(sql`id`, paymentIds)} and id in (
      select id from payments
      where ${idIn(sql`id`, paymentIds)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
        and status in ('settling', 'settled') and delivery is not null and delivered_at is null
      order by id for no key update)
    returning id`,
  )
  return new Set(rows.map((row) => row.id))
}
