import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql } from '../../../platform/db/db.ts'

const AmountRow = z.object({ walletId: z.string(), amount: z.string().transform((text) => BigInt(text)) })

/** A token at some wallets of a network. */
interface Holdings {
  readonly network: string
  readonly asset: string
  readonly walletIds: readonly string[]
}

/**
 * The amounts of a token that screening froze at these wallets, by wallet, in the token's smallest unit; wallets without any are omitted.
 */
export async function listFrozenAmounts(
  db: Queryable,
  tenant: Tenant,
  requested: Holdings,
): Promise<ReadonlyMap<string, bigint>> {
  if (requested.walletIds.length === 0) return new Map()
  const rows = await db.many(
    AmountRow,
    sql`
    select wallet_id, sum(frozen_raw_amount)::text as amount from wallet_transactions
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = any(${requested.walletIds}::text[])
      and network = ${requested.network} and lower(token) = lower(${requested.asset}) and status <> 'withdrawn' and frozen_raw_amount > 0
    group by wallet_id`,
  )
  return new Map(rows.map((row) => [row.walletId, row.amount]))
}
