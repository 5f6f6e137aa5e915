import type { OffRamp } from '../../../partners/offramp/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { openDetails } from './seal.ts'
import { type BankAccountRow, findPayoutAccount, findSealedDetails, insertPayoutAccount } from './store.ts'

type Known =
  | { readonly ok: true; readonly accountId: string }
  /** `undefined`: the account was deleted meanwhile. */
  | { readonly ok: false; readonly code: string | undefined }

/**
 * The bank account as the partner knows it. Told to the partner the first time; asked again after a death in between, the partner
 * answers the same account, since its request is named by the account's own id.
 */
export async function payoutAccountOf(ctx: Ctx, partner: OffRamp, account: BankAccountRow): Promise<Known> {
  const known = await findPayoutAccount(ctx.db, ctx.tenant, { bankAccountId: account.id, partner: partner.name })
  if (known !== undefined) return { ok: true, accountId: known }
  const sealed = await findSealedDetails(ctx.db, ctx.tenant, account.id)
  if (sealed === undefined) return { ok: false, code: undefined }
  const agreed = await partner.createAccount({
    key: account.id,
    owner: { kind: 'business', name: account.accountName },
    accountName: account.accountName,
    destination: openDetails(ctx, account.id, sealed),
  })
  if (!agreed.ok) return { ok: false, code: agreed.refusal.code }
  if (!agreed.value.isActive) return { ok: false, code: 'account-not-active' }
  const { accountId } = agreed.value
  await insertPayoutAccount(ctx.db, ctx.tenant, { bankAccountId: account.id, partner: partner.name, accountId })
  return { ok: true, accountId }
}
