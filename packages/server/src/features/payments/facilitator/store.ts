import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql } from '../../../platform/db/db.ts'
import { idIs } from '../../../platform/db/page.ts'
import { id, type PaymentId } from '../../../platform/ids.ts'
import { paymentStatuses } from '../schema.ts'

/** A payment as a settle request finds it by its claim, of any organization. The caller checks what it may disclose. */
export const KnownPayment = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  door: z.enum(['verify', 'facilitator', 'upfront']),
  network: z.string(),
  scheme: z.string(),
  protocolVersion: z.number().nullable(),
  payTo: z.string(),
  payer: z.string().nullable(),
  rawAmount: z.string().transform((digits) => BigInt(digits)),
  paymentFingerprint: z.string().nullable(),
  status: z.enum(paymentStatuses),
})
export type KnownPayment = z.output<typeof KnownPayment>

const columns = sql`id, organisation_id, environment, door, network, scheme, protocol_version, pay_to, payer, raw_amount, payment_fingerprint, status`

/** Finds a payment by its claim across organizations: a claim is unique for the whole service. */
export function findClaimed(db: Queryable, claimKey: string): Promise<KnownPayment | undefined> {
  return db.maybeOne(
    KnownPayment,
    sql`
    select ${columns} from payments where id = (select payment_id from payment_claims where claim_hash = claim_hash(${claimKey}))`,
  )
}

export function getKnownPayment(db: Queryable, tenant: Tenant, paymentId: string): Promise<KnownPayment> {
  return db.one(
    KnownPayment,
    sql`
    select ${columns} from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}`,
  )
}

/**
 * Takes the one success response of a payment; returns false for every caller but the first. The same caller may take it again
 * under the Idempotency-Key `key`, so that a lost response can be repeated.
 */
export async function markAnswered(
  db: Queryable,
  paymentId: PaymentId,
  { now, key }: { readonly now: Date; readonly key: string | null },
): Promise<boolean> {
  const taken = await db.run(sql`
    update payments set answered_at = coalesce(answered_at, ${now}), answered_to = ${key}
    where ${idIs(paymentId)} and status = 'settled' and (answered_at is null or answered_to = ${key})`)
  return taken === 1
}
