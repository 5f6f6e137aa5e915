import { sql, type Tx } from '../../../platform/db/db.ts'
import type { Id } from '../../../platform/ids.ts'

/** Records those of these confirmed deposits, at managed wallets, whose organisation was deleted; the metrics show them to the operator. */
export async function recordLateDeposits(tx: Tx, ids: readonly Id<'wtx'>[]): Promise<void> {
  if (ids.length === 0) return
  await tx.run(sql`
    insert into late_deposits (organisation_id, transaction_id, tokens)
    select deposit.organisation_id, deposit.id, deposit.raw_amount / power(10::numeric, deposit.decimals) from wallet_transactions as deposit join organisations on organisations.id = deposit.organisation_id
    where deposit.id = any(${ids}::text[]) and deposit.wallet_id not like 'byw\\_%' and organisations.deleted_at is not null
    on conflict do nothing`)
}
