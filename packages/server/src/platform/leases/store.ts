import { z } from 'zod'
import { anyLength, type Db, type Queryable, type Sql, sql, type Tx } from '../db/db.ts'

/** A share of some work. Its name never changes, so that a scope has as many rows as shards. */
export interface Share {
  readonly scope: string
  readonly shard: number
}

/** The right to work on a share. Another epoch or another owner token is another holder. */
export interface Lease extends Share {
  readonly epoch: bigint
}

/** Leases of one scope under which a piece of work began. Its later writes are refused if the leases are lost by then. */
export interface LeaseSet {
  readonly scope: string
  /** Random for each holder: after an asynchronous fail-over of the database an epoch can be assigned twice. */
  readonly ownerToken: string
  readonly leaseMs: number
  readonly leases: readonly Lease[]
}

interface Holder {
  readonly ownerToken: string
  readonly leaseMs: number
}

const LeaseRow = z.object({ scope: z.string(), shard: z.number(), epoch: z.bigint() })

/** Inserts the missing rows of these shares, without a holder. */
export async function insertShares(db: Queryable, shares: readonly Share[]): Promise<void> {
  await db.run(sql`
    insert into leases (scope, shard, epoch, owner_token, until)
    select scope, shard, 0, '', '-infinity' from ${given(shares)} as given (scope, shard) on conflict do nothing`)
}

/**
 * Takes those shares whose lease has ended by the database's clock. One that a statement of its last holder still locks is skipped: it is
 * free when that transaction has ended.
 */
export function takeLeases(db: Queryable, shares: readonly Share[], { ownerToken, leaseMs }: Holder): Promise<Lease[]> {
  return db.many(
    LeaseRow,
    sql`
    with free as (
      select scope, shard from leases where (scope, shard) in (select * from ${given(shares)}) and until < clock_timestamp()
      order by scope, shard for update skip locked
    )
    update leases l set epoch = l.epoch + 1, owner_token = ${ownerToken}, until = clock_timestamp() + ${leaseMs} * interval '1 ms'
    from free f where l.scope = f.scope and l.shard = f.shard returning l.scope, l.shard, l.epoch`,
  )
}

/**
 * Renews leases; returns those that were still the holder's. An expired one is not renewed, even if nobody took it: it must be taken again.
 */
export function renewLeases(
  db: Queryable,
  leases: readonly Lease[],
  { ownerToken, leaseMs }: Holder,
): Promise<Lease[]> {
  return db.many(
    LeaseRow,
    sql`
    update leases l set until = clock_timestamp() + ${leaseMs} * interval '1 ms'
    from ${given(leases)} as mine (scope, shard, epoch)
    where l.scope = mine.scope and l.shard = mine.shard and l.epoch = mine.epoch and l.owner_token = ${ownerToken} and l.until > clock_timestamp()
    returning l.scope, l.shard, l.epoch`,
  )
}

/** Releases leases immediately, so that another process need not wait for their end. */
export async function releaseLeases(db: Queryable, leases: readonly Lease[], ownerToken: string): Promise<void> {
  await db.run(sql`
    update leases l set until = '-infinity' from ${given(leases)} as mine (scope, shard, epoch)
    where l.scope = mine.scope and l.shard = mine.shard and l.epoch = mine.epoch and l.owner_token = ${ownerToken}`)
}

/** Milliseconds until the first of these leases of other holders ends, unless it is renewed; undefined without any. */
export async function readNextEnd(db: Queryable, shares: readonly Share[]): Promise<number | undefined> {
  const { ms } = await db.one(
    z.object({ ms: z.number().nullable() }),
    sql`
    select (extract(epoch from min(until) - clock_timestamp()) * 1000)::double precision as ms
    from leases where (scope, shard) in (select * from ${given(shares)}) and until > '-infinity'`,
  )
  return ms ?? undefined
}

/**
 * The fence, for the `where` of a statement: whether the row with this shard is under one of the leases. The lease is then locked until the
 * transaction ends: it can be renewed, and nobody can take it before the transaction's effects are visible.
 */
export function isUnder({ scope, ownerToken, leases }: LeaseSet, shard: Sql): Sql {
  return sql`exists (
    select from leases leased where leased.scope = ${scope} and leased.shard = ${shard} and leased.owner_token = ${ownerToken}
      and (leased.shard, leased.epoch) in (select * from unnest(${anyLength(
        leases.map((lease) => lease.shard),
        sql`integer`,
      )}, ${anyLength(
        leases.map(({ epoch }) => epoch),
        sql`bigint`,
      )}))
      and leased.until > clock_timestamp() for key share)`
}

/**
 * Runs work with fenced statements in one transaction. A process whose host fails in the middle keeps its leases and rows locked for at
 * most half a lease, so that the next holder waits for nothing else.
 */
export function fencedTx<T>(db: Db, { leaseMs }: LeaseSet, work: (tx: Tx) => Promise<T>): Promise<T> {
  return db.tx(work, { idleMsMax: leaseMs / 2, readsByKeys: true })
}

function given(shares: readonly (Share | Lease)[]): Sql {
  const [scopes, shards] = [shares.map(({ scope }) => scope), shares.map(({ shard }) => shard)]
  const epochs = shares.flatMap((share) => ('epoch' in share ? [share.epoch] : []))
  return epochs.length === 0
    ? sql`unnest(${anyLength(scopes)}, ${anyLength(shards, sql`integer`)})`
    : sql`unnest(${anyLength(scopes)}, ${anyLength(shards, sql`integer`)}, ${anyLength(epochs, sql`bigint`)})`
}
