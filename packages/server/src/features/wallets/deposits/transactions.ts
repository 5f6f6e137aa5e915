import { formatAmount } from '@purser/protocol'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, pageOf } from '../../../platform/wire.ts'
import { networkFor } from '../../chains/index.ts'
import type { Ctx } from '../ports.ts'
import type { TransactionQuery, WalletTransaction } from './schema.ts'
import { listTransactions, type TransactionRow } from './transaction-store.ts'

/** A page of the transactions of a wallet, newest first. The caller must have checked that the wallet belongs to the tenant. */
export async function pageOfTransactions(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  walletId: string,
  query: TransactionQuery,
): Promise<Page<WalletTransaction>> {
  const { limit, cursor, chain, ...filters } = query
  const network = chain && networkFor(chain, ctx.tenant.environment).name
  const requested = { walletId, filter: { ...filters, network } }
  const rows = await listTransactions(ctx.db, ctx.tenant, requested, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.id)
  return { ...page, items: page.items.map(shownTransaction) }
}

export function shownTransaction(row: TransactionRow): WalletTransaction {
  const { id, walletId, direction, kind, status, chain, tokenSymbol, from, to, txHash, logIndex } = row
  return {
    id,
    walletId,
    direction,
    kind,
    status,
    chain,
    tokenSymbol,
    amount: formatAmount(row.rawAmount, row.decimals),
    rawAmount: row.rawAmount.toString(),
    from,
    to,
    txHash,
    logIndex,
    blockNumber: Number(row.blockNumber),
    amlStatus: direction === 'in' ? row.amlStatus : null,
    frozenAmount: formatAmount(row.frozenRawAmount, row.decimals),
    createdAt: row.createdAt,
    confirmedAt: row.confirmedAt,
  }
}
