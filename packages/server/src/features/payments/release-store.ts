import { networks } from '@purser/protocol'
import { z } from 'zod'
import { utcMonthOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { idIs } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { dayOf, sharersOf } from '../plans/index.ts'
import type { NewPayment } from './store.ts'

const OpenRow = z.object({ id: id('pay'), createdAt: z.date(), validBefore: z.date(), payer: z.string().nullable() })
/** A payment that is verified. */
export type OpenRow = z.output<typeof OpenRow>

const FoundRow = OpenRow.extend({ status: z.string(), validBefore: z.date().nullable() })

/** Finds a tenant's payment for its release. */
export function findToRelease(
  db: Queryable,
  { organisationId, environment }: Tenant,
  paymentId: PaymentId,
): Promise<z.output<typeof FoundRow> | undefined> {
  return db.maybeOne(
    FoundRow,
    sql`
    select id, status, created_at, valid_before, payer from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${organisationId} and environment is not distinct from ${environment}`,
  )
}

/** The quota that has no place for a payment: the month's count, or the day's gas on its network. */
export type Lacking = 'plan-limit' | 'gas-budget'

interface Wanted {
  readonly lacking: Lacking
  readonly needed: bigint
  readonly until: Date
  readonly most: number
}

/**
 * Locks the oldest open payments that free what a new payment needs, of all organisations that share it, and no more of them; none if the `most` oldest free less.
 * What is left of the quota is not counted, since another payment may take it meanwhile. Those that another transaction has locked are left out: it locks
 * the next ones instead, so that two payments at the same moment both find what they need.
 */
export async function lockInTheWay(
  tx: Tx,
  tenant: Tenant,
  payment: Pick<NewPayment, 'network' | 'createdAt'>,
  { lacking, needed, until, most }: Wanted,
): Promise<OpenRow[]> {
  const isOpen = sql`status = 'verified' and created_at <= ${until}`
  const inTheWay = inTheWayOf(tenant, payment, { lacking, isOpen })
  for (let limit = await countNeeded(tx, inTheWay, { needed, most }); limit > 0; limit = Math.min(most, 2 * limit)) {
    const locked = await tx.many(FreeingRow, sql`${inTheWay} limit ${limit} for no key update skip locked`)
    const freed = locked.reduce((sum, { frees }) => sum + frees, 0n)
    if (freed >= needed) return withoutSpare(locked, needed)
    if (locked.length < limit || limit === most) return []
  }
  return []
}

const FreeingRow = OpenRow.extend({ frees: z.string().transform(BigInt) })

/** Selects the open payments in the way of a new one that share what it lacks, the oldest first. */
export function inTheWayOf(
  { organisationId, environment }: Tenant,
  payment: Pick<NewPayment, 'network' | 'createdAt'>,
  { lacking, isOpen }: { readonly lacking: Lacking; readonly isOpen: Sql },
): Sql {
  const isGas = lacking === 'gas-budget'
  const on = isGas ? [payment.network] : networks.map(({ name }) => name)
  const taking = isGas
    ? sql`(created_at at time zone 'UTC')::date = ${dayOf(payment.createdAt)}::date and gas_reserved_nano_usd > 0`
    : sql`to_char(created_at at time zone 'UTC', 'YYYY-MM') = ${utcMonthOf(payment.createdAt)}`
  return sql`
    select id, created_at, valid_before, payer, network, tx_hash, ${isGas ? sql`gas_reserved_nano_usd::text` : sql`'1'`} as frees from payments
    where network = any(${on}::text[]) and check_at is not null and environment = ${environment} and ${isOpen}
      and organisation_id in (${isGas ? sql`${organisationId}::text` : sharersOf(organisationId)}) and ${taking}
    order by created_at, id`
}

/** Returns how many of the oldest free what is needed, whether they are locked or not; 0 if the `most` oldest free less. */
async function countNeeded(tx: Tx, inTheWay: Sql, { needed, most }: Pick<Wanted, 'needed' | 'most'>): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.number() }),
    sql`
    select coalesce(min(place), 0)::int as count from (
      select row_number() over oldest as place, sum(frees::numeric) over oldest as freed from (${inTheWay} limit ${most}) as found
      window oldest as (order by created_at, id)
    ) as added where freed >= ${needed.toString()}::numeric`,
  )
  return count
}

function withoutSpare(locked: readonly z.output<typeof FreeingRow>[], needed: bigint): OpenRow[] {
  let freed = 0n
  return locked.filter(({ frees }) => {
    const isNeeded = freed < needed
    freed += frees
    return isNeeded
  })
}
