import type { NewPayoutAccount, OffRamp } from '../../../partners/offramp/port.ts'
import type { Ctx } from '../ports.ts'
import { fail } from '../withdraw/errors.ts'
import {
  deleteRequest,
  findPayoutAccount,
  findPayoutCustomer,
  noteRequest,
  type PayoutAccountKey,
  setPayoutAccount,
} from './payout-account-store.ts'
import { openDetails } from './seal.ts'
import { type BankAccountRow, findSealedDetails } from './store.ts'

type Known =
  | { readonly ok: true; readonly accountId: string }
  /** `undefined`: the account was deleted meanwhile. */
  | { readonly ok: false; readonly code: string | undefined }

/**
 * The bank account at the partner, under the organisation's own customer there. A row is stored before the request, so that after a crash
 * no account remains at the partner without a record here. A repeated request returns the same account, since the account's own id names
 * the request.
 */
export async function payoutAccountOf(ctx: Ctx, partner: OffRamp, account: BankAccountRow): Promise<Known> {
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
    // What is paid to it would reach the owner of the other bank account.
    ctx.log.error({ partner: partner.name, bankAccountId: account.id }, 'a partner answered with another bank account')
    await deleteRequest(ctx.db, ctx.tenant, key)
    return { ok: false, code: 'account-of-another' }
  }
  return agreed.value.isActive
    ? { ok: true, accountId: agreed.value.accountId }
    : { ok: false, code: 'account-not-active' }
}

/** The account to create at the partner; equal for equal bank accounts. */
export function newAccount(
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
