import { isTempo, type Network, networks } from '@purser/protocol'
import { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { idIn, idIs } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { dayOf, monthAround, sharersOf } from '../plans/index.ts'
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

/** The quota that a new payment exceeds: the monthly number of payments, or the day's gas on its network. */
export type ExhaustedQuota = 'plan-limit' | 'gas-budget'

/** Selects the oldest open payments that share the exhausted quota and were made before `until`. */
export interface EvictionQuery {
  readonly exhausted: ExhaustedQuota
  readonly until: Date
  readonly most: number
}

/** A kind of open payments: its networks, and a condition on its rows. */
interface Kind {
  readonly isOn: (network: Network) => boolean
  readonly isOpen: Sql
}

const verified: Kind = { isOn: (network) => !isTempo(network), isOpen: sql`p.status = 'verified'` }

const dayMs = 86_400_000

/**
 * Selects open payments that may be released for a new one, the oldest first, of all organisations that share the exhausted quota. It reads no
 * more rows of an organisation and a network than it returns, in a transaction that reads in order.
 */
export function selectEvictable(
  { organisationId, environment }: Tenant,
  { network, createdAt }: Pick<NewPayment, 'network' | 'createdAt'>,
  { exhausted, until, most }: EvictionQuery,
  { isOn, isOpen }: Kind,
): Sql {
  const isGas = exhausted === 'gas-budget'
  const day = Date.parse(dayOf(createdAt))
  const on = networks.filter((one) => isOn(one) && (!isGas || one.name === network)).map(({ name }) => name)
  const { start, end } = isGas ? { start: instantOf(day), end: instantOf(day + dayMs) } : monthAround(createdAt)
  return sql`
    select open.* from unnest(${on}::text[]) as n (network)
    cross join (${sharersOf(organisationId)}) as owner
    cross join lateral (
      select p.id, p.created_at, p.valid_before, p.payer, p.network, p.tx_hash, ${isGas ? sql`p.gas_reserved_nano_usd::text` : sql`'1'`} as frees from payments p
      where p.organisation_id = owner.id and p.environment = ${environment} and p.network = n.network and p.check_at is not null and p.has_place
        and ${isOpen} and p.created_at <= ${until} and p.created_at >= ${start} and p.created_at < ${end} and ${isGas ? sql`p.gas_reserved_nano_usd > 0` : sql`true`}
      order by p.created_at, p.id limit ${most}) as open
    order by open.created_at, open.id limit ${most}`
}

const EvictableRow = OpenRow.extend({ frees: z.string().transform(BigInt) })
/** A verified payment, and the amount of the exhausted quota that ends with it. */
export type EvictableRow = z.output<typeof EvictableRow>

/** Returns verified payments that may be released for a new one, the oldest first. */
export function listEvictable(
  db: Db,
  tenant: Tenant,
  payment: Pick<NewPayment, 'network' | 'createdAt'>,
  wanted: EvictionQuery,
): Promise<EvictableRow[]> {
  const statement = selectEvictable(tenant, payment, wanted, verified)
  return db.tx((tx) => tx.many(EvictableRow, statement), { readsInOrder: true })
}

/** Returns the number of verified payments of this payer that count toward the same exhausted quota. */
export async function countOfPayer(
  db: Db,
  { organisationId, environment }: Tenant,
  { network, payer }: Pick<NewPayment, 'network' | 'payer'>,
  exhausted: ExhaustedQuota,
): Promise<number> {
  const isSharing = exhausted === 'gas-budget' ? sql`network = ${network}` : sql`true`
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`
    with open as materialized (
      select organisation_id, environment, network, status from payments where payer = ${payer} and status in ('verified', 'settling')
    )
    select count(*) as count from open where status = 'verified' and environment = ${environment}
      and organisation_id in (${sharersOf(organisationId)}) and ${isSharing}`,
  )
  return Number(count)
}

/** Locks those of the payments that are still verified and that no other transaction has locked: two new payments at the same moment take different ones. */
export function lockVerified<T extends OpenRow>(tx: Tx, rows: readonly T[]): Promise<OpenRow[]> {
  const ids = rows.map(({ id }) => id)
  return tx.many(
    OpenRow,
    sql`
    select id, created_at, valid_before, payer from payments
    where ${idIn(sql`id`, ids)} and status is not distinct from 'verified' order by id for no key update skip locked`,
  )
}
