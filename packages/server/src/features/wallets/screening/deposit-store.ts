import { type NetworkName, networkByName } from '@purser/protocol'
import { z } from 'zod'
import type { Environment } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { AmountOnHold, HoldQuestion } from '../../funds/index.ts'
import { type DueChecks, listDueChecks } from '../../plans/index.ts'
import { Cursor } from '../deposits/cursor-store.ts'
import { bookedUpTo } from '../deposits/rollup-store.ts'
import { AmlStatus } from '../schema.ts'
import { onHoldWhileTraced } from './taint-trace-store.ts'

const StoredNetwork = z.string().transform((name, ctx) => {
  const network = networkByName(name)
  if (network !== undefined) return network.name
  ctx.addIssue({ code: 'custom', message: 'is no network' })
  return z.NEVER
})

const DueDeposit = z.object({
  id: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  network: StoredNetwork,
  from: StoredHex,
  amlStatus: AmlStatus,
})
export type DueDeposit = z.output<typeof DueDeposit>

/** Deposits whose sender is to be screened, as `listDueChecks` reads them: those of each environment wait for themselves. Migration 0389 indexes them. */
const toScreen = sql`(
  select id, organisation_id, environment as network, aml_due_at as check_at from wallet_transactions
  where direction = 'in' and status <> 'withdrawn' and aml_due_at < 'infinity')`

/** A condition: whether any deposit's sender is due for screening. */
export function isAnyDepositDue(now: Date): Sql {
  const first = (environment: Environment): Sql => sql`(
    select check_at from ${toScreen} t where t.network = ${environment} and t.check_at <= ${now} order by t.check_at limit 1)`
  return sql`coalesce(${first('live')}, ${first('test')}) is not null`
}

/** Deposits of all organisations whose sender is due for screening, in shares of their owners. The transaction must read in order. */
export async function listDueDeposits(
  tx: Tx,
  environment: Environment,
  { now, ...due }: Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date },
): Promise<DueDeposit[]> {
  const at = sql`${now}::timestamptz`
  const dueIds = await listDueChecks(tx, { table: toScreen, network: environment, now: at, ...due })
  if (dueIds.length === 0) return []
  return tx.many(
    DueDeposit,
    sql`
    select id, organisation_id, environment, wallet_id, network, from_address as from, aml_status from wallet_transactions
    where id = any(${dueIds}::text[]) and aml_due_at <= ${now} order by array_position(${dueIds}::text[], id)`,
  )
}

/** Sets the next screening of deposits that are due, after one that could not be stored. */
export async function postponeDeposits(db: Queryable, deposits: readonly DueDeposit[], until: Date): Promise<void> {
  await db.run(sql`
    with locked as materialized (
      select id from wallet_transactions
      where id = any(${deposits.map((one) => one.id)}::text[]) and aml_due_at < ${until}
        and (id, organisation_id, environment) in (select * from ${named(deposits)})
      order by id for update
    )
    update wallet_transactions w set aml_due_at = ${until} from locked where w.id = locked.id`)
}

const ScreenedDeposit = z.object({
  id: id('wtx'),
  amlStatus: AmlStatus,
  amlTicket: z.bigint(),
  createdAt: z.date(),
  token: z.string(),
  block: z.bigint(),
})
export type ScreenedDeposit = z.output<typeof ScreenedDeposit>

/** Names deposits by their ids and their tenants, which were read together. */
const named = (deposits: readonly DueDeposit[]): Sql => sql`unnest(${deposits.map(({ id }) => id)}::text[],
  ${deposits.map(({ organisationId }) => organisationId)}::text[], ${deposits.map(({ environment }) => environment)}::text[])`

/** Locks the rows of these deposits, in the order of their ids, until the transaction ends. */
export function lockScreenedDeposits(tx: Tx, deposits: readonly DueDeposit[]): Promise<ScreenedDeposit[]> {
  return tx.many(
    ScreenedDeposit,
    sql`
    select id, aml_status, aml_ticket, created_at, token, block_number as block from wallet_transactions
    where id = any(${deposits.map((one) => one.id)}::text[])
      and (id, organisation_id, environment) in (select * from ${named(deposits)})
    order by id for update`,
  )
}

/** The stored result of a screening. */
export interface DepositScreening {
  readonly deposit: DueDeposit
  readonly amlStatus: string
  /** A hold ends if this is false, and never begins again: the money may have moved since. */
  readonly isOnHold: boolean
  /** Null: no further screening until a new list concerns the sender. */
  readonly dueAt: Date | null
}

/** Stores the results of screenings. The caller has locked the deposits. */
export async function markDepositsScreened(tx: Tx, screenings: readonly DepositScreening[]): Promise<void> {
  if (screenings.length === 0) return
  const each = <T>(read: (screening: DepositScreening) => T): T[] => screenings.map(read)
  await tx.run(sql`
    update wallet_transactions w set aml_status = given.aml_status, aml_ticket = nextval('screening_tickets'),
      on_hold = w.on_hold and given.on_hold, aml_due_at = coalesce(given.due_at, 'infinity')
    from unnest(${each(({ deposit }) => deposit.id)}::text[], ${each(({ deposit }) => deposit.organisationId)}::text[],
      ${each(({ deposit }) => deposit.environment)}::text[], ${each(({ amlStatus }) => amlStatus)}::text[],
      ${each(({ isOnHold }) => isOnHold)}::boolean[], ${each(({ dueAt }) => dueAt)}::timestamptz[]
    ) as given (id, organisation_id, environment, aml_status, on_hold, due_at)
    where w.id = given.id and w.organisation_id = given.organisation_id and w.environment = given.environment`)
}

/** Expression on `opening_amounts o`: what is booked, such as by a rescan, up to its block. */
const bookedAtOpening: Sql = bookedUpTo({
  walletId: sql`o.wallet_id`,
  network: sql`o.network`,
  token: sql`o.token`,
  block: sql`o.block_number`,
})

/** Expression on a query `q`: the part of an opening amount that no rescan has booked. */
const openingOnHold: Sql = sql`coalesce((select greatest(0, o.raw_amount - ${bookedAtOpening}) from opening_amounts o
  where o.organisation_id = q.organisation_id and o.environment = q.environment and o.wallet_id = q.wallet_id and o.network = q.network
    and lower(o.token) = q.token), 0)`

/**
 * Expression on `tainted_places p` and a query `q`: the part of the balance that is neither booked nor an opening amount, at most the flagged money
 * that left according to the ledger, if that is known (`least` ignores null). The ledger may lack a deposit that was spent in place of that money.
 */
const unbookedInPlaceOfTaint: Sql = sql`greatest(0, least(p.raw_left, q.raw_balance - ${openingOnHold} - ${bookedUpTo({
  walletId: sql`p.wallet_id`,
  network: sql`p.network`,
  token: sql`p.token`,
  block: sql`q.up_to`,
})}))`

/** Condition on `tainted_places p`: the place of a query `q`. */
const isPlaceOfQuery: Sql = sql`p.organisation_id = q.organisation_id and p.environment = q.environment and p.wallet_id = q.wallet_id
  and p.network = q.network and lower(p.token) = q.token`

/** Expression on `tainted_places p`: the frozen amount of those of its rows that are in blocks up to `q.up_to`. */
const frozenUpTo: Sql = sql`p.raw_frozen - coalesce((select sum(w.frozen_raw_amount) from wallet_transactions w
  where w.wallet_id = p.wallet_id and w.network = p.network and w.token = p.token and w.block_number > q.up_to and w.direction = 'in'
    and w.status <> 'withdrawn' and w.frozen_raw_amount > 0), 0)`

const AmountRow = z.object({
  frozen: StoredBigInt,
  unscreened: StoredBigInt,
  notFinal: StoredBigInt,
  isBooked: z.boolean(),
})

/**
 * Amounts on hold at managed wallets, in the order of the queries: the spendable amount is the balance less the frozen and unscreened
 * amounts, never below zero. Read it again in the transaction that stores the intent to move money, under the wallet's lock, because a
 * deposit may be booked in between.
 */
export function amountsOnHold(db: Queryable, questions: readonly HoldQuestion[]): Promise<AmountOnHold[]> {
  const each = <T>(read: (question: HoldQuestion) => T, type: Sql): Sql => anyLength(questions.map(read), type)
  const place = sql`w.organisation_id = q.organisation_id and w.environment = q.environment and w.wallet_id = q.wallet_id
        and w.network = q.network and lower(w.token) = q.token and w.direction = 'in' and w.status <> 'withdrawn'
        and w.block_number <= q.up_to`
  return db.many(
    AmountRow,
    sql`
    with q as (
      select * from unnest(
        ${each(({ tenant }) => tenant.organisationId, sql`text`)}, ${each(({ tenant }) => tenant.environment, sql`text`)},
        ${each(({ walletId }) => walletId, sql`text`)}, ${each(({ network }) => network, sql`text`)},
        ${each(({ token }) => token.toLowerCase(), sql`text`)}, ${each(({ upTo }) => upTo, sql`bigint`)},
        ${each(({ upToHash }) => upToHash ?? '', sql`text`)},
        ${each(({ rawBalance }) => rawBalance?.toString() ?? null, sql`numeric`)}
      ) with ordinality as given (organisation_id, environment, wallet_id, network, token, up_to, up_to_hash, raw_balance, place)
    ), tips as materialized (
      select tip.*, not exists (select from deposit_cursors c where c.network = tip.network and c.scanned < tip.up_to)
        and not exists (
          select from scanned_blocks b where b.network = tip.network and b.number = tip.up_to and tip.up_to_hash <> '' and b.hash <> tip.up_to_hash
        ) as is_booked
      from (select distinct network, up_to, up_to_hash from q) tip
    )
    select
      (select coalesce(sum(${frozenUpTo}), 0)::text from tainted_places p where ${isPlaceOfQuery}) as frozen,
      (coalesce((select sum(raw_amount - frozen_raw_amount) from wallet_transactions w where ${place} and aml_status = 'pending' and on_hold), 0)
        + ${openingOnHold} + ${onHoldWhileTraced}
        + coalesce((select sum(${unbookedInPlaceOfTaint}) from tainted_places p
          where ${isPlaceOfQuery} and p.raw_left is distinct from 0 and q.raw_balance is not null), 0))::text as unscreened,
      (select coalesce(sum(raw_amount - frozen_raw_amount), 0)::text from wallet_transactions w where ${place} and status = 'pending'
        and not (aml_status = 'pending' and on_hold)) as not_final, tips.is_booked
    from q join tips using (network, up_to, up_to_hash) order by q.place`,
  )
}

/** The newest block whose deposits are booked; undefined before the first. */
export async function findBookedTo(db: Queryable, network: NetworkName): Promise<bigint | undefined> {
  const row = await db.maybeOne(Cursor, sql`select scanned, checked from deposit_cursors where network = ${network}`)
  return row?.scanned ?? undefined
}
