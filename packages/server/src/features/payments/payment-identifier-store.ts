import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'

const FingerprintRow = z.object({ paymentFingerprint: z.string().nullable() })

/** Returns the digest of the tenant's payment with this identifier; undefined if there is none, and no digest if it was archived. */
export async function findFingerprint(
  db: Queryable,
  tenant: Tenant,
  paymentIdentifier: string,
): Promise<string | undefined> {
  const row = await db.maybeOne(
    FingerprintRow,
    sql`
    select payment_fingerprint from payment_claims left join payments on payments.id = payment_id
    where identifier_hash = identifier_hash(${tenant.organisationId}, ${tenant.environment}, ${paymentIdentifier})`,
  )
  return row === undefined ? undefined : (row.paymentFingerprint ?? '')
}
