import type { OffRamp } from '../../../partners/offramp/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import { type Recurring, retryDelayMs } from '../../../platform/job.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import type { Ctx, Deps } from '../ports.ts'
import { newAccount } from './payout-account.ts'
import {
  type AccountRemoval,
  isAnyToRemove,
  markRemoved,
  putOffRemoval,
  setPayoutAccount,
  takeRemovals,
} from './payout-account-store.ts'

const most = 20
const retry = { attemptsMax: Number.POSITIVE_INFINITY, delayMsFirst: 60_000, delayMsMax: 6 * 3_600_000 }
/** How long a process has an account to itself. */
const takenMs = 120_000

/**
 * Has partners delete the accounts of deleted bank accounts; one with a payout in progress waits. Idempotent: an account that the partner
 * does not know is deleted.
 */
export const removePayoutAccounts: Recurring<Deps> = {
  name: 'withdrawals.remove-payout-accounts',
  everyMs: 5_000,
  isDue: ({ clock }) => isAnyToRemove(clock.now()),
  async run(system) {
    const now = system.clock.now()
    const removal = await takeRemovals(system.db, { now, until: instantOf(now.getTime() + takenMs), most })
    const free = removal.filter(({ isPaid }) => !isPaid)
    await Promise.all(free.map((account) => removeOne(forTenant(system, account), account)))
  },
}

async function removeOne(ctx: Ctx, account: AccountRemoval): Promise<void> {
  try {
    const partner = ctx.offRamps[ctx.tenant.environment]
    if (partner?.name !== account.partner) throw new Error(`${account.partner} is not configured`)
    const accountId = account.accountId ?? (await lostAccount(ctx, partner, account))
    if (accountId !== undefined) await partner.deleteAccount({ customerId: account.customerId, accountId })
    await ctx.db.tx(async (tx) => {
      await markRemoved(tx, ctx.tenant, account, ctx.clock.now())
      const details = { partner: account.partner, accountId: accountId ?? null }
      await ctx.audit(tx, { action: 'withdrawals.payoutAccounts.remove', target: account.bankAccountId, details })
    })
  } catch (err) {
    const { bankAccountId, removeAttempts } = account
    ctx.log.warn({ err, bankAccountId, removeAttempts }, 'a partner has not deleted a bank account; retrying')
    const waitMs = retryDelayMs(retry, removeAttempts)
    await putOffRemoval(ctx.db, ctx.tenant, account, instantOf(ctx.clock.now().getTime() + waitMs))
  }
}

/**
 * The account whose id was never stored: the partner returns it for a repeated request with the same name. Undefined if it created none.
 */
async function lostAccount(ctx: Ctx, partner: OffRamp, account: AccountRemoval): Promise<string | undefined> {
  const { accountName, details: sealed } = account
  if (sealed === null) return undefined
  const agreed = await partner.createAccount(newAccount(ctx, account, { accountName, sealed }))
  if (!agreed.ok) return undefined
  // The account of another bank account stays.
  const isOwn = await setPayoutAccount(ctx.db, ctx.tenant, account, agreed.value)
  return isOwn ? agreed.value.accountId : undefined
}
