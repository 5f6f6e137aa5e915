import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type Id, id } from '../../platform/ids.ts'
import type { TransferPlan } from './ports.ts'
import type { TransferId } from './store.ts'

export type QuoteId = Id<'qte'>

export const QuoteRow = z.object({
  id: id('qte'),
  walletId: z.string(),
  toAddress: StoredHex,
  fromNetwork: z.string(),
  toNetwork: z.string(),
  fromToken: z.string(),
  toToken: z.string(),
  rawAmount: StoredBigInt,
  route: z.string(),
  partner: z.string().nullable(),
  rawOutMin: StoredBigInt,
  expiresAt: z.date(),
})
export type QuoteRow = z.output<typeof QuoteRow>

export async function insertQuote(db: Queryable, tenant: Tenant, quote: QuoteRow): Promise<void> {
  await db.run(sql`
    insert into transfer_quotes (id, organisation_id, environment, wallet_id, to_address, from_network, to_network, from_token, to_token,
      raw_amount, route, partner, raw_out_min, expires_at)
    values (${quote.id}, ${tenant.organisationId}, ${tenant.environment}, ${quote.walletId}, ${quote.toAddress}, ${quote.fromNetwork},
      ${quote.toNetwork}, ${quote.fromToken}, ${quote.toToken}, ${quote.rawAmount.toString()}, ${quote.route}, ${quote.partner},
      ${quote.rawOutMin.toString()}, ${quote.expiresAt})`)
}

export function findQuote(db: Queryable, tenant: Tenant, quoteId: QuoteId): Promise<QuoteRow | undefined> {
  return db.maybeOne(
    QuoteRow,
    sql`
    select id, wallet_id, to_address, from_network, to_network, from_token, to_token, raw_amount, route, partner, raw_out_min, expires_at
    from transfer_quotes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${quoteId}`,
  )
}

/** Deletes the quotes of transfers that are stored in this transaction; returns those that existed. */
export function deleteQuotes(
  tx: Tx,
  tenant: Tenant,
  quoteIds: readonly QuoteId[],
): Promise<{ readonly id: QuoteId; readonly expiresAt: Date }[]> {
  return tx.many(
    z.object({ id: id('qte'), expiresAt: z.date() }),
    sql`
    delete from transfer_quotes
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${quoteIds}::text[])
    returning id, expires_at`,
  )
}

/** Deletes some of the quotes that expired before this instant; returns how many. */
export function deleteExpiredQuotes(db: Queryable, before: Date, most: number): Promise<number> {
  return db.run(sql`
    delete from transfer_quotes where id in (
      select id from transfer_quotes where expires_at < ${before} order by expires_at limit ${most} for update skip locked)`)
}

interface Paying {
  readonly transferId: TransferId
  readonly plan: Pick<TransferPlan, 'quote'>
}

/**
 * Assigns the partner's orders to the transfers that pay for them. Returns the transfers whose order another transfer has, whether or not that one
 * paid: a partner fills an order once, and would keep a second payment.
 */
export async function takeOrders(tx: Tx, paying: readonly Paying[]): Promise<ReadonlySet<TransferId>> {
  const given = paying.flatMap(({ transferId, plan: { quote } }) =>
    quote?.orderId === undefined ? [] : [{ transferId, orderId: `${quote.partner} ${quote.orderId}` }],
  )
  if (given.length === 0) return new Set()
  const orderIds = given.map(({ orderId }) => orderId)
  await tx.run(sql`
    insert into partner_orders (order_id, transfer_id)
    select order_id, transfer_id from unnest(${orderIds}::text[], ${given.map(({ transferId }) => transferId)}::text[]) as given (order_id, transfer_id)
    order by order_id
    on conflict (order_id) do nothing`)
  const rows = await tx.many(
    z.object({ orderId: z.string(), transferId: id('wtx') }),
    sql`select order_id, transfer_id from partner_orders where order_id = any(${orderIds}::text[])`,
  )
  const owners = new Map(rows.map(({ orderId, transferId }) => [orderId, transferId]))
  return new Set(given.flatMap(({ orderId, transferId }) => (owners.get(orderId) === transferId ? [] : [transferId])))
}
