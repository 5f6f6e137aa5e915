import { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import { type Db, isSerializationFailure, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { idLagMsMax } from '../../../platform/db/page.ts'
import { quarterMs, settledOnChain } from './read-store.ts'

const stepMs = 3_600_000
const recountsMax = 50

/**
 * Marks the quarters that ended more than 65 minutes ago. These payments are more than an hour old, so every
 * transaction that changes one from now on records that change in a row.
 */
export async function markQuarters(db: Db): Promise<void> {
  await db.run(sql`
    update payment_rollup_state set marked_until = date_bin('15 minutes', clock_timestamp() - interval '65 minutes', 'epoch'),
      marked_xid = pg_current_xact_id()
    where marked_until <= sealed_until and marked_until < date_bin('15 minutes', clock_timestamp() - interval '65 minutes', 'epoch')`)
}

const State = z.object({ sealedUntil: z.date(), markedUntil: z.date(), markedXid: z.string() })
type State = z.output<typeof State>

/** Counts the next marked quarters, at most an hour. Returns whether it did; not while a transaction from before the mark is open. */
export async function sealNext(db: Db): Promise<boolean> {
  const ready = await findReadyMark(db)
  if (ready === undefined) return false
  return inSnapshot(db, async (tx, { sealedUntil, markedUntil, markedXid }) => {
    if (markedXid !== ready.markedXid || sealedUntil >= markedUntil) return false
    const { first, until } = await nextStep(tx, sealedUntil, markedUntil)
    if (first < until) await countPayments(tx, { first, until })
    await countDays(
      tx,
      sql`at >= date_trunc('day', ${sealedUntil}::timestamptz, 'UTC') and at < date_trunc('day', ${until}::timestamptz, 'UTC')`,
    )
    await tx.run(sql`update payment_rollup_state set sealed_until = ${until}`)
    return true
  })
}

/**
 * The mark with quarters to count, once every transaction that wrote payments before it has ended. Must run before the snapshot that counts:
 * what has ended here is visible there. Transactions of other databases of the server have older ids too, but hold no lock on these payments.
 */
function findReadyMark(db: Db) {
  return db.maybeOne(
    State.pick({ markedXid: true }),
    sql`
    with locks as materialized (
      select locktype, relation, mode, virtualtransaction, transactionid from pg_locks
      where database = (select oid from pg_database where datname = current_database()) or locktype = 'transactionid'
    )
    select marked_xid::text as marked_xid from payment_rollup_state
    where marked_until > sealed_until and (marked_xid < pg_snapshot_xmin(pg_current_snapshot()) or not exists (
      select from locks as writing join locks as begun using (virtualtransaction)
      where writing.locktype = 'relation' and writing.relation = 'payments'::regclass and writing.mode = 'RowExclusiveLock'
        and begun.locktype = 'transactionid' and begun.mode = 'ExclusiveLock' and age(begun.transactionid) > age(marked_xid::xid)
    ))`,
  )
}

const Step = z.object({ first: z.date(), until: z.date() })
type Step = z.output<typeof Step>

/** The quarters to count next, all of one day; those before the first payment are left out. */
function nextStep(tx: Tx, sealedUntil: Date, markedUntil: Date): Promise<Step> {
  return tx.one(
    Step,
    sql`
    select first, least(${markedUntil}::timestamptz, first + ${stepMs}::float8 * interval '1 ms', date_trunc('day', first, 'UTC') + interval '1 day') as until
    from (
      select least(${markedUntil}::timestamptz, greatest(${sealedUntil}::timestamptz, coalesce(date_bin('15 minutes', (
        select created_at - ${lag} - ${lag} from payments where id >= first_id_at('pay', ${sealedUntil}::timestamptz - ${lag}) order by id limit 1
      ), 'epoch'), 'infinity'))) as first
    ) as step`,
  )
}

const Changed = z.object({ organisationId: z.string(), environment: z.string(), at: z.date() })

/** Counts quarters again in which payments changed. Returns whether there may be more. */
export function recountChanged(db: Db): Promise<boolean> {
  return inSnapshot(db, async (tx, { sealedUntil }) => {
    const quarters = await tx.many(
      Changed,
      sql`
      with picked as (
        select distinct organisation_id, environment, at from payment_rollup_changes where at < ${sealedUntil} limit ${recountsMax}
      ), deleted as (
        delete from payment_rollup_changes as changed using picked
        where changed.organisation_id = picked.organisation_id and changed.environment = picked.environment and changed.at = picked.at
      )
      select * from picked`,
    )
    for (const quarter of quarters) await recount(tx, quarter, sealedUntil)
    return quarters.length === recountsMax
  })
}

async function recount(tx: Tx, { organisationId, environment, at }: z.output<typeof Changed>, sealedUntil: Date) {
  const own = sql`organisation_id = ${organisationId} and environment = ${environment}`
  await tx.run(sql`delete from payment_rollups where ${own} and span = 15 and at = ${at}`)
  await tx.run(sql`delete from settlement_times where ${own} and at = ${at}`)
  const until = instantOf(at.getTime() + quarterMs)
  await countPayments(tx, { first: at, until }, own)
  const day = sql`date_trunc('day', ${at}::timestamptz, 'UTC')`
  await tx.run(sql`delete from payment_rollups where ${own} and span = 1440 and at = ${day}`)
  await countDays(
    tx,
    sql`${own} and at >= ${day} and at < ${day} + interval '1 day' and ${day} + interval '1 day' <= ${sealedUntil}`,
  )
}

const lag = sql`${idLagMsMax}::float8 * interval '1 ms'`
const dimensions = sql`route, protocol, wallet_id, api_key_id, token, decimals, status, failure_reason`

/** Writes the rollups of these quarters: for all tenants by the payments' ids, for one by those of its logs. */
async function countPayments(tx: Tx, { first, until }: Step, own?: Sql): Promise<void> {
  const [id, prefix] = own === undefined ? [sql`id`, 'pay'] : [sql`log_id`, 'plog']
  const counted = sql`
    payments where ${own ?? sql`true`} and ${id} >= first_id_at(${prefix}, ${first}::timestamptz - ${lag})
      and ${id} < first_id_at(${prefix}, ${until}::timestamptz + ${lag}) and created_at >= ${first} and created_at < ${until}`
  const quarter = sql`date_bin('15 minutes', created_at, 'epoch')`
  await tx.run(sql`
    insert into payment_rollups (organisation_id, environment, span, at, ${dimensions}, payments, raw_amount)
    select organisation_id, environment, 15, ${quarter}, ${dimensions}, count(*), sum(raw_amount) from ${counted}
    group by organisation_id, environment, ${quarter}, ${dimensions}`)
  await tx.run(sql`
    insert into settlement_times (organisation_id, environment, at, ms, payments)
    select organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at), count(*) from ${counted} and ${settledOnChain}
    group by organisation_id, environment, ${quarter}, settlement_ms(created_at, settled_at)`)
}

/** Writes the rollups of days, from those of their quarters. */
async function countDays(tx: Tx, quarters: Sql): Promise<void> {
  const day = sql`date_trunc('day', at, 'UTC')`
  await tx.run(sql`
    insert into payment_rollups (organisation_id, environment, span, at, ${dimensions}, payments, raw_amount)
    select organisation_id, environment, 1440, ${day}, ${dimensions}, sum(payments), sum(raw_amount) from payment_rollups
    where span = 15 and ${quarters} group by organisation_id, environment, ${day}, ${dimensions}`)
}

/**
 * Runs the work in one snapshot, by one process at a time. Returns false if another process has changed the state
 * since: that one does the work.
 */
async function inSnapshot(db: Db, run: (tx: Tx, state: State) => Promise<boolean>): Promise<boolean> {
  try {
    return await db.tx(async (tx) => {
      await tx.run(sql`set transaction isolation level repeatable read`)
      const state = await tx.one(
        State,
        sql`select sealed_until, marked_until, marked_xid::text as marked_xid from payment_rollup_state for update`,
      )
      return run(tx, state)
    })
  } catch (error) {
    if (isSerializationFailure(error)) return false
    throw error
  }
}
