import { appendAudit } from '../../../platform/audit.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { OrganisationId } from '../../../platform/ids.ts'
import { setPayoutCustomer } from './payout-account-store.ts'

/** The partner of the live environment that has customers. */
const partner = 'bridge'

/**
 * Says which customer at the partner an organisation is, as the operator. False where the customer is another organisation's, or there is
 * no such organisation. Bank accounts that the partner has under the customer before stay there until they are deleted, and are made anew.
 */
export function assignPayoutCustomer(
  { db, clock, random, actor, requestId }: Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'>,
  organisationId: OrganisationId,
  customerId: string,
): Promise<boolean> {
  const tenant = { organisationId, environment: 'live' } as const
  return db.tx(async (tx) => {
    if (!(await setPayoutCustomer(tx, tenant, { partner, customerId, setAt: clock.now() }))) return false
    const details = { partner, customerId }
    const entry = { action: 'withdrawals.payoutCustomers.set', target: organisationId, details }
    await appendAudit({ clock, random, actor, requestId, tenant }, tx, entry)
    return true
  })
}
