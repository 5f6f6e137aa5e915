import type { NewPayoutAccount, OffRamp } from '../../../partners/offramp/port.ts'
import { appendAudit } from '../../../platform/audit.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { OrganisationId } from '../../../platform/ids.ts'
import { type RecurringTask, retryDelayMs } from '../../../platform/recurring-task.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import type { Ctx, Deps } from '../ports.ts'
import { fail } from '../withdraw/errors.ts'
import {
  type AccountRemoval,
  deleteRequest,
  findPayoutAccount,
  findPayoutCustomer,
  isAnyToRemove,
  markRemoved,
  noteRequest,
  type PayoutAccountKey,
  putOffRemoval,
  setPayoutAccount,
  setPayoutCustomer,
  takeRemovals,
} from './payout-account-store.ts'
import { BankDetails } from './rules.ts'
import { type BankAccountId, type BankAccountRow, findSealedDetails } from './store.ts'

type Known =
  | { readonly ok: true; readonly accountId: string }
  /** `undefined`: the account was deleted meanwhile. */
  | { readonly ok: false; readonly code: string | undefined }

/**
 * The bank account at the partner, under the organisation's own customer there. A row is stored before the request, so that after a crash
 * no account remains at the partner without a record here. A repeated request returns the same account, since the account's own id names
 * the request.
 */
export async function payoutAccountOf(
  ctx: Pick<Ctx, 'db' | 'log' | 'sealer' | 'tenant'>,
  partner: OffRamp,
  account: BankAccountRow,
): Promise<Known> {
  const customerId = partner.hasCustomers ? await findPayoutCustomer(ctx.db, ctx.tenant, partner.name) : ''
  if (customerId === undefined) throw fail('payouts-not-enabled')
  const key: PayoutAccountKey = { bankAccountId: account.id, partner: partner.name, customerId }
  const known = await findPayoutAccount(ctx.db, ctx.tenant, key)
  if (known !== undefined) return { ok: true, accountId: known }
  if (!(await ctx.db.tx((tx) => noteRequest(tx, ctx.tenant, key)))) return { ok: false, code: undefined }
  const sealed = await findSealedDetails(ctx.db, ctx.tenant, account.id)
  if (sealed === undefined) return { ok: false, code: undefined }
  const agreed = await partner.createAccount(newAccount(ctx, key, { ...account, sealed }))
  if (!agreed.ok) {
    await deleteRequest(ctx.db, ctx.tenant, key)
    return { ok: false, code: agreed.refusal.code }
  }
  if (!(await setPayoutAccount(ctx.db, ctx.tenant, key, agreed.value))) {
    // Otherwise a payout would go to the owner of the other bank account.
    ctx.log.error({ partner: partner.name, bankAccountId: account.id }, 'a partner answered with another bank account')
    await deleteRequest(ctx.db, ctx.tenant, key)
    return { ok: false, code: 'account-of-another' }
  }
  return agreed.value.isActive
    ? { ok: true, accountId: agreed.value.accountId }
    : { ok: false, code: 'account-not-active' }
}

/** The account to create at the partner; equal for equal bank accounts. */
function newAccount(
  ctx: Pick<Ctx, 'tenant' | 'sealer'>,
  { bankAccountId, customerId }: PayoutAccountKey,
  { accountName, sealed }: { readonly accountName: string; readonly sealed: Uint8Array },
): NewPayoutAccount {
  return {
    key: bankAccountId,
    customerId,
    owner: { kind: 'business', name: accountName },
    accountName,
    destination: openDetails(ctx, bankAccountId, sealed),
  }
}

/**
 * Sets an organisation's customer at a partner that has customers, as the operator. False if the customer is another organisation's, or the organisation
 * does not exist. Bank accounts under the previous customer stay at the partner until they are deleted, and are created again.
 */
export function assignPayoutCustomer(
  { db, clock, random, actor, requestId }: Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'>,
  organisationId: OrganisationId,
  { partner, customerId }: { readonly partner: string; readonly customerId: string },
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

const most = 20
const retry = { attemptsMax: Number.POSITIVE_INFINITY, delayMsFirst: 60_000, delayMsMax: 6 * 3_600_000 }
/** Milliseconds for which a process has an account to itself. */
const takenMs = 120_000

/**
 * Has partners delete the accounts of deleted bank accounts; one with a payout in progress waits. Idempotent: an account that the partner
 * does not know is deleted.
 */
export const removePayoutAccounts: RecurringTask<Deps> = {
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

/** The account whose id was never stored: the partner returns it for a repeated request with the same key. Undefined if it created none. */
async function lostAccount(
  ctx: Pick<Ctx, 'db' | 'sealer' | 'tenant'>,
  partner: OffRamp,
  account: AccountRemoval,
): Promise<string | undefined> {
  const { accountName, details: sealed } = account
  if (sealed === null) return undefined
  const agreed = await partner.createAccount(newAccount(ctx, account, { accountName, sealed }))
  if (!agreed.ok) return undefined
  // The account of another bank account stays.
  const isOwn = await setPayoutAccount(ctx.db, ctx.tenant, account, agreed.value)
  return isOwn ? agreed.value.accountId : undefined
}

/** The details as they are stored: they can be opened only in this account's row. */
export function sealDetails(ctx: Pick<Ctx, 'sealer' | 'tenant'>, id: BankAccountId, details: BankDetails): Uint8Array {
  return ctx.sealer.seal(Buffer.from(JSON.stringify(details)), placeOf(ctx.tenant, id))
}

/** The details, for the partner that pays the account. Throws if the sealed bytes are another account's. */
export function openDetails(ctx: Pick<Ctx, 'sealer' | 'tenant'>, id: BankAccountId, sealed: Uint8Array): BankDetails {
  const opened = ctx.sealer.open(sealed, placeOf(ctx.tenant, id))
  return BankDetails.parse(JSON.parse(Buffer.from(opened).toString('utf8')))
}

function placeOf({ organisationId, environment }: Tenant, id: BankAccountId): string {
  return `bank-account|${organisationId}|${environment}|${id}`
}
