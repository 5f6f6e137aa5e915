import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** The tenant of a wallet or deposit; undefined for an unknown id. */
export function findTenantOfHold(db: Queryable, subjectId: string): Promise<Tenant | undefined> {
  return db.maybeOne(
    TenantRow,
    subjectId.startsWith('wtx_')
      ? sql`select organisation_id, environment from wallet_transactions where id = ${subjectId}`
      : sql`select organisation_id, environment from watched_addresses where wallet_id = ${subjectId} limit 1`,
  )
}

const ReleasedDeposit = z.object({
  id: id('wtx'),
  walletId: z.string(),
  network: z.string(),
  tokenSymbol: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  from: z.string(),
})
export type ReleasedDeposit = z.output<typeof ReleasedDeposit>

/** Ends holds of a deposit, or of a wallet's deposits, at most `most` of them; returns those that it ended. */
export function endHolds(tx: Tx, tenant: Tenant, subjectId: string, most: number): Promise<ReleasedDeposit[]> {
  return tx.many(
    ReleasedDeposit,
    sql`
    update wallet_transactions set on_hold = false
    where id in (
      select id from wallet_transactions
      where environment = ${tenant.environment} and organisation_id = ${tenant.organisationId}
        and (wallet_id = ${subjectId} or id = ${subjectId})
        and direction = 'in' and status <> 'withdrawn' and aml_status = 'pending' and on_hold
      order by id limit ${most} for update)
    returning id, wallet_id, network, token_symbol, decimals, raw_amount::text, from_address as from`,
  )
}

/** Whether live money is on hold that was screened without a source, or was not screened since `before`. */
export async function hasLiveHolds(db: Queryable, before: Date): Promise<boolean> {
  const row = await db.one(
    z.object({ isHeld: z.boolean() }),
    sql`
    select exists (
      select from wallet_transactions
      where environment = 'live' and direction = 'in' and status <> 'withdrawn' and aml_status = 'pending' and on_hold
        and (aml_ticket > 0 or created_at < ${before})) as is_held`,
  )
  return row.isHeld
}
