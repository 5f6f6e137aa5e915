import { type Sql, sql } from '../../../platform/db/db.ts'

/** A token of a wallet on a network, and a block, as expressions of a statement. */
interface PlaceAt {
  readonly walletId: Sql
  readonly network: Sql
  readonly token: Sql
  readonly block: Sql
}

/**
 * Returns an expression: the booked balance after a block, below zero if more left than came in. It reads the sums of whole spans of blocks, and the rows of the
 * block’s own span.
 */
export function bookedUpTo({ walletId, network, token, block }: PlaceAt): Sql {
  return sql`(
    coalesce((select sum(part.raw_amount) from wallet_rollups part where part.wallet_id = ${walletId} and part.network = ${network}
      and part.token = ${token} and part.span < wallet_rollup_span(${block})), 0)
    + coalesce((select sum(case own.direction when 'in' then own.raw_amount else -own.raw_amount end) from wallet_transactions own
      where own.wallet_id = ${walletId} and own.network = ${network} and own.token = ${token} and own.status <> 'withdrawn'
        and own.block_number >= wallet_rollup_span(${block}) << 14 and own.block_number <= ${block}), 0))`
}
