import { z } from 'zod'
import { type Clock, instantOf } from '../clock.ts'
import { type Queryable, sql } from '../db/db.ts'
import { deleteExpired, type Sweep } from '../db/delete-expired.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { mayTake } from '../share.ts'

/** Largest stored body of a response. */
export const keptBytesMax = 65_536
/** Bytes that a stored key takes beside the body of its response, with its place in the indexes. */
export const bytesPerKey = 400

/** Milliseconds after which a process with requests adds what it stored to the table again, and reads what all processes stored. */
const exchangeMs = 5_000
/** An owner without a request for so long is read again at its next one. */
const forgottenMs = 60_000
const hourMs = 3_600_000
/** Responses are stored for a day, and each row of the table is of an hour. */
const countedMs = 25 * hourMs

/** The bytes that requests with an Idempotency-Key stored within a day, by share owner. */
export interface KeptBytes {
  /** The stored bytes of an owner whose share of the storage, or of this part of it, is used up; undefined for other owners. */
  beyondShare(owner: string, part?: number): Promise<number | undefined>
  /** Counts bytes that were stored for an owner, or released if negative. */
  add(owner: string, bytes: number): void
}

interface Use {
  /** Of all processes, at the last exchange. */
  stored: number
  /** Of this process since then. */
  unsaved: number
  usedAtMs: number
  /** Resolves once `stored` was read for the first time. */
  readonly known: Promise<void>
}

/** The row of all owners together. */
const everybody = ''

/**
 * Counts stored response bytes in memory. While there are requests, processes exchange their counts through a table every five seconds, so no
 * request waits for a counter. An owner can exceed its share by at most what all processes store for it in that time.
 */
export function createKeptBytes(
  {
    db,
    clock,
    log,
    metrics,
  }: { readonly db: Queryable; readonly clock: Clock; readonly log: Log; readonly metrics: Metrics },
  bytesMax: number,
): KeptBytes {
  const owners = new Map<string, Use>()
  const total = { stored: 0, unsaved: 0 }
  let exchangedAtMs = Number.NEGATIVE_INFINITY
  const read = async (names: readonly string[], nowMs: number): Promise<void> => {
    const stored = await listUse(db, [everybody, ...names], instantOf(nowMs - countedMs))
    total.stored = stored.get(everybody) ?? 0
    for (const name of names) {
      const use = owners.get(name)
      if (use !== undefined) use.stored = stored.get(name) ?? 0
    }
  }
  const exchange = async (nowMs: number): Promise<void> => {
    for (const [name, { usedAtMs, unsaved }] of owners)
      if (unsaved === 0 && nowMs - usedAtMs > forgottenMs) owners.delete(name)
    const sent = [...owners].flatMap(([owner, { unsaved }]) => (unsaved === 0 ? [] : [{ owner, bytes: unsaved }]))
    if (sent.length > 0) await addUse(db, sent, instantOf(nowMs - (nowMs % hourMs)))
    for (const { owner, bytes } of sent) {
      const use = owners.get(owner)
      if (use === undefined) continue
      total.unsaved -= bytes
      use.unsaved -= bytes
    }
    await read([...owners.keys()], nowMs)
  }
  const useOf = (owner: string, nowMs: number): Use => {
    const had = owners.get(owner)
    if (had !== undefined) return had
    const use: Use = {
      stored: 0,
      unsaved: 0,
      usedAtMs: nowMs,
      known: Promise.resolve().then(() => read([owner], nowMs)),
    }
    owners.set(owner, use)
    use.known.catch(() => {
      if (owners.get(owner) !== use) return
      owners.delete(owner)
      total.unsaved -= use.unsaved
    })
    return use
  }
  const exchangeInTime = (nowMs: number): void => {
    if (nowMs - exchangedAtMs <= exchangeMs) return
    exchangedAtMs = nowMs
    exchange(nowMs).catch((error: unknown) =>
      log.warn({ err: error }, 'the bytes of stored responses could not be counted; they will be counted later'),
    )
  }
  const placesOf = ({ stored, unsaved }: Use) => {
    const own = stored + unsaved
    return { own, taken: Math.max(total.stored + total.unsaved, own) }
  }
  showUse(metrics, bytesMax, () => {
    exchangeInTime(clock.now().getTime())
    const places = [...owners.values()].map(placesOf)
    return {
      taken: total.stored + total.unsaved,
      largestShare: Math.max(0, ...places.map(({ own, taken }) => own / Math.max(1, (bytesMax - (taken - own)) / 2))),
    }
  })
  return {
    async beyondShare(owner, part = 1) {
      const nowMs = clock.now().getTime()
      const use = useOf(owner, nowMs)
      use.usedAtMs = nowMs
      await use.known
      exchangeInTime(nowMs)
      const places = placesOf(use)
      return mayTake({ ...places, max: bytesMax * part, more: keptBytesMax }) ? undefined : places.own
    },
    add(owner, bytes) {
      useOf(owner, clock.now().getTime()).unsaved += bytes
      total.unsaved += bytes
    },
  }
}

function showUse(
  metrics: Metrics,
  bytesMax: number,
  read: () => { readonly taken: number; readonly largestShare: number },
): void {
  metrics.gauge('purser_idempotency_bytes_max', 'Most bytes of stored responses of a day.').set(bytesMax)
  metrics.gauge('purser_idempotency_bytes', 'Bytes of stored responses of a day.', [], (gauge) =>
    gauge.set(read().taken),
  )
  const help =
    'How much of its share of the stored responses the account has that is nearest to its share, from 0 to 1.'
  metrics.gauge('purser_idempotency_largest_share', help, [], (gauge) => gauge.set(read().largestShare))
}

const UseRow = z.object({ owner: z.string(), bytes: z.bigint() })

async function listUse(db: Queryable, owners: readonly string[], since: Date): Promise<ReadonlyMap<string, number>> {
  const rows = await db.many(
    UseRow,
    sql`
    select owner, sum(bytes)::bigint as bytes from idempotency_use where owner = any(${owners}::text[]) and hour >= ${since} group by owner`,
  )
  return new Map(rows.map(({ owner, bytes }) => [owner, Number(bytes)]))
}

async function addUse(
  db: Queryable,
  uses: readonly { readonly owner: string; readonly bytes: number }[],
  hour: Date,
): Promise<void> {
  await db.run(sql`
    with given as (
      select * from unnest(${uses.map(({ owner }) => owner)}::text[], ${uses.map(({ bytes }) => bytes)}::bigint[]) as given (owner, bytes)
    )
    insert into idempotency_use (owner, hour, bytes)
    select owner, ${hour}, bytes from (select * from given union all select ${everybody}, sum(bytes)::bigint from given) as added order by owner collate "C"
    on conflict (owner, hour) do update set bytes = idempotency_use.bytes + excluded.bytes`)
}

/** Deletes the hours that no longer count. */
export function deleteExpiredUse(sweep: Sweep, now: Date): Promise<number> {
  const where = sql`hour < ${instantOf(now.getTime() - countedMs - hourMs)}`
  return deleteExpired(sweep, { from: sql`idempotency_use`, where, orderBy: sql`hour` })
}
