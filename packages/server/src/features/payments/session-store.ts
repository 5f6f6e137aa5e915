import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { sql, type Tx } from '../../platform/db/db.ts'
import { idIs } from '../../platform/db/page.ts'
import { type Id, id, type PaymentId } from '../../platform/ids.ts'
import { paymentStatuses } from './schema.ts'

export const BuyingRow = z.object({
  id: id('pay'),
  walletId: z.string().nullable(),
  payer: z.string().nullable(),
  resource: z.string().nullable(),
  status: z.enum(paymentStatuses),
  failureReason: z.string().nullable(),
  isRefunded: z.boolean(),
})
export type BuyingRow = z.output<typeof BuyingRow>

/** Locks a payment's row until the transaction ends, so that requests for its session run one after another. */
export function lockBuying(tx: Tx, tenant: Tenant, paymentId: PaymentId): Promise<BuyingRow | undefined> {
  return tx.maybeOne(
    BuyingRow,
    sql`
    select id, wallet_id, payer, resource, status, failure_reason, refunded_raw > 0 and refunded_raw >= raw_amount as is_refunded from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}
    for no key update`,
  )
}

/** Links the payment, which the caller has locked, to the session and the vault that it bought. The session is not revoked. */
export async function linkPaymentToSession(
  tx: Tx,
  tenant: Tenant,
  paymentId: PaymentId,
  bought: { readonly sessionId: Id<'sess'>; readonly vaultId: Id<'vlt'> },
): Promise<void> {
  await tx.run(sql`
    update payments set session_id = ${bought.sessionId}, vault_id = ${bought.vaultId}, session_revoked = false
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment}`)
}
