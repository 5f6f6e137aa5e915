import type { Hex, Network } from '@purser/protocol'
import { z } from 'zod'
import { anyLength, type Db, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import { type DueCursors, listDueChecks } from '../plans/index.ts'
import { RelayPayload, relayPurpose, relayStates } from './port.ts'

const RelayRow = z.object({
  id: z.bigint(),
  network: z.string(),
  purpose: z.string(),
  subjectId: z.string(),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  signer: z.string(),
  payload: RelayPayload,
  validBefore: z.date(),
  alone: z.boolean(),
  state: z.enum(relayStates),
  attempts: z.number(),
  createdAt: z.date(),
})
type RelayRow = z.output<typeof RelayRow>

const columns = sql`id, network, purpose, subject_id, organisation_id, environment, signer, payload, valid_before, alone, state, attempts, created_at`

const IdRow = z.object({ id: z.bigint() })

/** Returns relays that wait to be sent, without locking them. */
export function listWaiting(db: Queryable, relayIds: readonly bigint[]): Promise<RelayRow[]> {
  return db.many(
    RelayRow,
    sql`select ${columns} from relays where id = any(${anyLength(relayIds, sql`bigint`)}) and state = 'waiting'`,
  )
}

/** Locks those of the relays that still wait and may be sent; skips those that another process has locked. */
export function lockWaiting(tx: Tx, relayIds: readonly bigint[]): Promise<RelayRow[]> {
  return tx.many(
    RelayRow,
    sql`
    select ${columns} from relays where id = any(${relayIds}::bigint[]) and state = 'waiting' and next_attempt_at <= now()
    order by id for update skip locked`,
  )
}

/** Links relays to the transaction that carries them. */
export async function markIncluded(tx: Tx, relayIds: readonly bigint[], transactionId: string): Promise<void> {
  await tx.run(sql`
    update relays set state = 'included', transaction_id = ${transactionId}, attempts = attempts + 1, next_attempt_at = null, check_at = null, checks = 0
    where id = any(${relayIds}::bigint[])`)
}

/** Whether a transaction was sent to carry relays; `hash` is of any of its signed versions. */
export async function carriesRelays(db: Queryable, network: Network, hash: Hex): Promise<boolean> {
  const { is } = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (
      select from transaction_attempts a join chain_transactions c on c.id = a.transaction_id
      where a.network = ${network.name} and a.hash = ${hash.toLowerCase()} and c.purpose = ${relayPurpose}) as is`,
  )
  return is
}

const CarriedRow = RelayRow.extend({ transactionId: id('ctx') })
export type CarriedRow = z.output<typeof CarriedRow>

/** Returns the relays of these purposes that transactions carry. */
export function listCarried(
  db: Queryable,
  transactionIds: readonly string[],
  purposes: readonly string[],
): Promise<CarriedRow[]> {
  if (purposes.length === 0) return Promise.resolve([])
  return db.many(CarriedRow, carriedBy(transactionIds, purposes))
}

/** Locks relays that transactions carry, in the order of their ids. */
export function lockCarried(
  tx: Tx,
  transactionIds: readonly string[],
  purposes: readonly string[],
): Promise<CarriedRow[]> {
  return tx.many(CarriedRow, sql`${carriedBy(transactionIds, purposes)} for update`)
}

/** Returns the signers of relays whose transactions of this account were sent alone and are not in a block yet. */
export async function listSignersInFlight(db: Queryable, network: string, settler: string): Promise<readonly string[]> {
  const rows = await db.many(
    z.object({ signer: z.string() }),
    sql`
    select r.signer from chain_transactions c join relays r on r.transaction_id = c.id and r.state = 'included'
    where c.network = ${network} and c.sender = ${settler} and c.travels_alone and c.status in ('planned', 'sent')`,
  )
  return rows.map(({ signer }) => signer)
}

function carriedBy(transactionIds: readonly string[], purposes: readonly string[]): Sql {
  return sql`
    select ${columns}, transaction_id from relays
    where transaction_id = any(${transactionIds}::text[]) and state = 'included' and purpose = any(${purposes}::text[]) order by id`
}

/**
 * Makes relays wait again after their transaction ended without them. They are sent alone, and only after the chain was read.
 * `attempts` is raised to this number if it is lower.
 */
export async function markLeft(
  tx: Tx,
  relays: readonly { readonly id: bigint; readonly attempts: number }[],
): Promise<void> {
  if (relays.length === 0) return
  await tx.run(sql`
    update relays r set state = 'waiting', transaction_id = null, alone = true, attempts = greatest(r.attempts, g.attempts), next_attempt_at = null,
      check_at = now(), checks = 0
    from unnest(${relays.map((one) => one.id)}::bigint[], ${relays.map((one) => one.attempts)}::smallint[]) as g (id, attempts)
    where r.id = g.id and r.state = 'included'`)
}

/** Postpones relays that may be sent, each by the next step of its back-off; skips those for which the chain is read first. */
export async function postpone(
  db: Queryable,
  relayIds: readonly bigint[],
  { firstMs, mostMs }: Backoff,
): Promise<void> {
  if (relayIds.length === 0) return
  await db.run(sql`
    update relays set next_attempt_at = now() + least(${firstMs}::float8 * 2 ^ checks, ${mostMs}::float8) * interval '1 millisecond', checks = least(checks + 1, 30)
    where ${amongWaiting(relayIds)} and next_attempt_at is not null`)
}

/** Selects relays that wait, locked in the order of their ids, as everywhere. */
export function amongWaiting(relayIds: readonly bigint[]): Sql {
  return sql`id in (select id from relays where id = any(${relayIds}::bigint[]) and state = 'waiting' order by id for no key update)`
}

/** Schedules a read of the chain for relays before they are sent, by the next step of their back-off. */
export async function setToCheck(
  db: Queryable,
  relayIds: readonly bigint[],
  { firstMs, mostMs }: Backoff,
): Promise<void> {
  if (relayIds.length === 0) return
  await db.run(sql`
    update relays set next_attempt_at = null, checks = least(checks + 1, 30),
      check_at = now() + least(${firstMs}::float8 * 2 ^ checks, ${mostMs}::float8) * interval '1 millisecond'
    where ${amongWaiting(relayIds)}`)
}

/** Milliseconds before the next attempt: the first, doubled each time, up to the most. */
export interface Backoff {
  readonly firstMs: number
  readonly mostMs: number
}

const CheckRow = RelayRow.extend({ mayBeSent: z.boolean(), isPast: z.boolean() })
/** `mayBeSent`: it waits in its queue. `isPast`: it has expired by the database's clock. */
export type CheckRow = z.output<typeof CheckRow>

/** Longest time between two reads for a relay that somebody else sends. */
const watchedMsMax = 15_000

/**
 * Takes relays for which the chain is to be read, fairly by share owner, and postpones each by its back-off before the
 * read: a relay whose read always fails, or even ends the process, blocks no others.
 */
export async function takeChecks(
  db: Db,
  network: string,
  { most, cursors, firstMs, mostMs }: Backoff & { readonly most: number; readonly cursors: DueCursors },
): Promise<CheckRow[]> {
  const relayIds = await listDueChecks(db, { table: sql`relays`, network, now: sql`now()`, most, cursors })
  if (relayIds.length === 0) return []
  const rows = await db.many(
    CheckRow,
    sql`
    with due as (
      select id from relays where id = any(${relayIds}::bigint[]) and check_at <= now() order by id for update skip locked
    )
    update relays r set checks = least(checks + 1, 30), check_at = now() + least(${firstMs}::float8 * 2 ^ checks,
      case when r.state = 'watched' then ${watchedMsMax} else ${mostMs} end::float8) * interval '1 millisecond'
    from due where r.id = due.id
    returning r.id, network, purpose, subject_id, organisation_id, environment, signer, payload, valid_before, alone, state, attempts, created_at,
      next_attempt_at is not null as may_be_sent, valid_before <= now() as is_past`,
  )
  const places = new Map(relayIds.map((relayId, place) => [relayId, place]))
  const placeOf = ({ id }: CheckRow): number => places.get(id.toString()) ?? 0
  return rows.toSorted((one, other) => placeOf(one) - placeOf(other))
}

/** Stops checks of relays that cannot change any more, or whose outcome nobody waits for. */
export async function stopChecks(db: Queryable, relayIds: readonly bigint[]): Promise<void> {
  if (relayIds.length === 0) return
  await db.run(sql`
    update relays set check_at = null where id in (
      select id from relays where id = any(${relayIds}::bigint[]) and state in ('failed', 'expired', 'withdrawn') order by id for no key update)`)
}

/**
 * Postpones the next read of relays that ended and whose nonce is unused: somebody else may still send them. The intervals double, and one read comes
 * after the expiry. A relay of more than 31 days is not read again: payers may sign without an end (decision 0262).
 */
export async function watchOn(db: Queryable, relayIds: readonly bigint[]): Promise<void> {
  if (relayIds.length === 0) return
  await db.run(sql`
    update relays set checks = 0, check_at = case when created_at > now() - interval '31 days'
      then least(now() + greatest(now() - created_at, ${watchedFor}), valid_before + interval '1 minute') end
    where id in (
      select id from relays where id = any(${relayIds}::bigint[]) and state in ('failed', 'withdrawn') and check_at is not null order by id for no key update)`)
}

/** Longest time after its end until a relay is read again for the first time: somebody else may have sent it. */
const watchedFor = sql`interval '1 day'`

/**
 * Ends relays that wait, are withdrawn or are watched; returns the ids of those that it ended. A failed one is read again at its expiry, or at once if it has
 * expired by the database's clock, because the chain's clock may be behind.
 */
export async function markRelaysEnded(
  tx: Tx,
  relayIds: readonly bigint[],
  state: 'failed' | 'expired',
): Promise<ReadonlySet<bigint>> {
  if (relayIds.length === 0) return new Set()
  const rows = await tx.many(
    IdRow,
    sql`
    update relays set state = ${state}, next_attempt_at = null, checks = 0,
      check_at = case when ${state === 'failed'} then least(valid_before, now() + ${watchedFor}) end
    where id = any(${relayIds}::bigint[]) and state in ('waiting', 'withdrawn', 'watched') returning id`,
  )
  return new Set(rows.map((row) => row.id))
}

/** Marks relays as settled, whatever was recorded before; returns the ids of those that were not. */
export async function markSettled(tx: Tx, relayIds: readonly bigint[]): Promise<ReadonlySet<bigint>> {
  if (relayIds.length === 0) return new Set()
  const rows = await tx.many(
    IdRow,
    sql`
    update relays set state = 'settled', next_attempt_at = null, check_at = null, checks = 0
    where id = any(${relayIds}::bigint[]) and state <> 'settled' returning id`,
  )
  return new Set(rows.map((row) => row.id))
}

/** Locks relays in the order of their ids, as everywhere; returns those that have not changed since they were read. */
export async function lockAsRead(
  tx: Tx,
  read: readonly Pick<RelayRow, 'id' | 'state' | 'attempts'>[],
): Promise<ReadonlySet<bigint>> {
  const rows = await tx.many(
    IdRow,
    sql`
    select r.id from relays r
    join unnest(${read.map((one) => one.id)}::bigint[], ${read.map((one) => one.state)}::text[], ${read.map((one) => one.attempts)}::integer[])
      as g (id, state, attempts) on r.id = g.id and r.state = g.state and r.attempts = g.attempts
    order by r.id for update of r`,
  )
  return new Set(rows.map((row) => row.id))
}

/** Removes a relay from the queue unless a transaction that may still be mined carries it; returns the number of changed rows. */
export function markWithdrawn(tx: Tx, purpose: string, subjectId: string): Promise<number> {
  return tx.run(sql`
    update relays set state = 'withdrawn', next_attempt_at = null, checks = 0, check_at = least(valid_before, now() + ${watchedFor})
    where purpose = ${purpose} and subject_id = ${subjectId} and state = 'waiting' and transaction_id is null`)
}

/** Reopens a settled relay: the chain is read at once, and no transaction carries it. */
export async function markReopened(
  tx: Tx,
  state: 'waiting' | 'watched',
  { purpose, subjectId }: Pick<RelayRow, 'purpose' | 'subjectId'>,
): Promise<void> {
  await tx.run(sql`
    update relays set state = ${state}, transaction_id = null, alone = true, next_attempt_at = null, check_at = now(), checks = 0
    where purpose = ${purpose} and subject_id = ${subjectId} and state = 'settled'`)
}

/** The condition of the indexes in the order of time (migration 0320). Look-ups by keys leave it out. */
export const inOrder = (at: Sql): Sql => sql`${at} > '-infinity'`

const BacklogRow = z.object({ count: z.bigint(), waitedMs: z.number() })

/**
 * Returns how many relays are due for a batch, up to a limit, and how long the first of them has waited; bounded, whatever the
 * backlog.
 */
export async function findBacklog(
  db: Queryable,
  network: string,
  most: number,
): Promise<{ readonly count: number; readonly waitedMs: number }> {
  const { count, waitedMs } = await db.one(
    BacklogRow,
    sql`
    select count(*) as count, coalesce(extract(epoch from now() - min(next_attempt_at)) * 1000, 0)::float8 as waited_ms from (
      select next_attempt_at from relays
      where network = ${network} and not alone and state = 'waiting' and ${inOrder(sql`next_attempt_at`)} and next_attempt_at <= now()
      order by next_attempt_at limit ${most}) as first`,
  )
  return { count: Number(count), waitedMs }
}
