import { networks } from '@purser/protocol'
import { z } from 'zod'
import { utcMonthOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
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

/**
 * Locks the oldest open payments that free what a new payment needs, of all organisations that share it, and no more of them; none if the `most` oldest free less.
 * What is left of the quota is not counted, since another payment may take it meanwhile. Those that another transaction has locked are left out.
 */
export function lockInTheWay(
  tx: Tx,
  { organisationId, environment }: Tenant,
  payment: Pick<NewPayment, 'network' | 'createdAt'>,
  {
    lacking,
    needed,
    until,
    most,
  }: { readonly lacking: Lacking; readonly needed: bigint; readonly until: Date; readonly most: number },
): Promise<OpenRow[]> {
  const isGas = lacking === 'gas-budget'
  const on = isGas ? [payment.network] : networks.map(({ name }) => name)
  const taking = isGas
    ? sql`(created_at at time zone 'UTC')::date = ${dayOf(payment.createdAt)}::date and gas_reserved_nano_usd > 0`
    : sql`to_char(created_at at time zone 'UTC', 'YYYY-MM') = ${utcMonthOf(payment.createdAt)}`
  return tx.many(
    OpenRow,
    sql`
    with locked as materialized (
      select id, created_at, valid_before, payer, ${isGas ? sql`gas_reserved_nano_usd` : sql`1::numeric`} as frees from payments
      where network = any(${on}::text[]) and check_at is not null and environment = ${environment} and status = 'verified'
        and organisation_id in (${isGas ? sql`${organisationId}::text` : sharersOf(organisationId)}) and created_at <= ${until} and ${taking}
      order by created_at, id limit ${most} for no key update skip locked
    ), added as (
      select *, sum(frees) over (order by created_at, id) - frees as freed_before, sum(frees) over () as freed from locked
    )
    select id, created_at, valid_before, payer from added where freed >= ${needed.toString()}::numeric and freed_before < ${needed.toString()}::numeric
    order by created_at, id`,
  )
}
