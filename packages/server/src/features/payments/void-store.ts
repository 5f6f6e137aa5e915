import { z } from 'zod'
import { type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { type DueChecks, listDueChecks, onAnyOf } from '../../platform/db/due-checks.ts'
import { oneOf } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { StoredAuthorization, StoredPermit2 } from './store.ts'

/** A payment for which the chain is checked: nobody requested settlement, or it was voided. */
export const CheckedRow = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  network: z.string(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  asset: z.templateLiteral(['0x', z.string()]),
  rawAmount: z.string().transform((text) => BigInt(text)),
  payer: z.string(),
  settlement: z.union([StoredPermit2, StoredAuthorization]),
  validBefore: z.date(),
  createdAt: z.date(),
  status: z.enum(['verified', 'settling', 'voided']),
})
export type CheckedRow = z.output<typeof CheckedRow>

const columns = sql`id, organisation_id, environment, wallet_id, network, chain, token, decimals, asset, raw_amount, payer, settlement,
  valid_before, created_at, status`

/** A condition: whether any payment of the networks is due. */
export function isAnyToCheck(networks: readonly string[], now: Date): Sql {
  return onAnyOf(
    networks,
    sql`select p.check_at from payments p where p.network = n.network and p.check_at is not null and p.check_at <= ${now} order by p.check_at limit 1`,
  )
}

/**
 * Returns payments of one network that are due, fairly by organization. In a transaction that reads in order it reads no more rows than it returns,
 * however many are due.
 */
export async function listToCheck(
  db: Queryable,
  network: string,
  { now, ...due }: Pick<DueChecks, 'most' | 'starts'> & { readonly now: Date },
): Promise<CheckedRow[]> {
  const paymentIds = await listDueChecks(db, { table: sql`payments`, network, now: sql`${now}::timestamptz`, ...due })
  if (paymentIds.length === 0) return []
  return db.many(
    CheckedRow,
    sql`select ${columns} from payments where ${oneOf(sql`id`, paymentIds)} and coalesce(check_at <= ${now}, false) order by array_position(${paymentIds}::text[], id)`,
  )
}

/** Returns a payer's open payments of one token, over all organizations. */
export function listOpenOf(
  db: Queryable,
  payer: { readonly payer: string; readonly network: string; readonly asset: string },
  most: number,
): Promise<CheckedRow[]> {
  return db.many(
    CheckedRow,
    sql`
    select ${columns} from payments
    where payer = ${payer.payer} and network = ${payer.network} and asset = ${payer.asset} and status in ('verified', 'settling')
      and settlement ->> 'kind' is distinct from 'tempo'
    order by id limit ${most}`,
  )
}

/** Sets when each is due next, null for never. A row whose status changed since the check is left alone. */
export async function setCheckAt(
  db: Queryable,
  checks: readonly { readonly id: PaymentId; readonly checkAt: Date | null }[],
): Promise<void> {
  const ids = checks.map(({ id }) => id)
  await db.run(sql`
    update payments set check_at = given.check_at
    from unnest(${ids}::text[], ${checks.map(({ checkAt }) => checkAt)}::timestamptz[]) as given (id, check_at)
    where payments.id = given.id and ${oneOf(sql`payments.id`, ids)} and status in ('verified', 'voided')`)
}
