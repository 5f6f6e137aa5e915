import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type Id, id } from '../../platform/ids.ts'

export type QuoteId = Id<'qte'>

const Raw = z.string().transform((text) => BigInt(text))

export const QuoteRow = z.object({
  id: id('qte'),
  walletId: z.string(),
  toAddress: z.templateLiteral(['0x', z.string()]),
  fromNetwork: z.string(),
  toNetwork: z.string(),
  fromToken: z.string(),
  toToken: z.string(),
  rawAmount: Raw,
  route: z.string(),
  partner: z.string().nullable(),
  rawOutMin: Raw,
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
