import type { Tenant } from '../../../platform/ctx.ts'
import type { Ctx } from '../ports.ts'
import { BankDetails } from './details.ts'
import type { BankAccountId } from './store.ts'

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
