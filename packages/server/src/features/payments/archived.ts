import type { Tenant } from '../../platform/ctx.ts'
import { isArchived } from '../../platform/db/archived-ids.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { type PaymentId, type PaymentLogId, paymentIdOf } from '../../platform/ids.ts'
import { fail } from './errors.ts'

/** Refuses a payment that was not found: 410 to the organization of an archived one, otherwise with the given error. */
export async function refusePayment(
  db: Queryable,
  tenant: Tenant,
  paymentId: PaymentId,
  otherwise: Error,
): Promise<never> {
  throw (await isArchived(db, tenant, paymentId)) ? fail('archived') : otherwise
}

/** Refuses a log that was not found, likewise. Only in old versions its id was not that of its payment with another prefix. */
export async function refuseLog(db: Queryable, tenant: Tenant, logId: PaymentLogId): Promise<never> {
  if (await isArchived(db, tenant, logId)) throw fail('archived')
  return refusePayment(db, tenant, paymentIdOf(logId), fail('payment-log-not-found'))
}
