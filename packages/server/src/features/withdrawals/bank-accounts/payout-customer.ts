import { appendAudit } from '../../../platform/audit.ts'
import type { OrganisationId } from '../../../platform/ids.ts'
import type { Ctx } from '../ports.ts'
import { setPayoutCustomer } from './payout-account-store.ts'

/** The partner of the live environment that has customers. */
const partner = 'bridge'

/**
 * Sets an organisation's customer at the partner, as the operator. False if the customer is another organisation's, or the organisation
 * does not exist. Bank accounts under the previous customer stay at the partner until they are deleted, and are created again.
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
