import { z } from 'zod'
import { anyLength, breaksUnique, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { id } from '../../platform/ids.ts'
import { shareOwnerSql, sharersOf } from '../plans/index.ts'
import { amongWaiting, inOrder } from './store.ts'

/** The queue of a signer on a network; it orders the signers' turns. */
const QueueKey = z.object({
  network: z.string(),
  alone: z.boolean(),
  organisationId: id('org'),
  purpose: z.string(),
  signer: z.string(),
})
export type QueueKey = z.output<typeof QueueKey>
export type TurnKey = Omit<QueueKey, 'signer'>

/** Derived from relay payloads as `payload`: signer, nonce space, nonce, and whether it is sent singly (`alone`). */
const derived = sql`
  lower(case when payload ->> 'kind' = 'permit2' then payload ->> 'owner' else payload ->> 'from' end) as signer,
  case when payload ->> 'kind' = 'permit2' then 'permit2' else lower(payload ->> 'token') end as nonce_space,
  lower(payload ->> 'nonce') as nonce,
  payload ->> 'kind' = 'permit2' or payload -> 'signature' ->> 'kind' = 'bytes' or coalesce(payload -> 'deployment', 'null') <> 'null' as alone`

/**
 * Stores relays and their queues in one statement, all of them or none: a nonce that another relay has fails it (`isNonceTaken`).
 * The queues' rows are locked for key share, so that nobody removes one as empty before the new relays are committed. A queue
 * that was removed or postponed meanwhile is returned by the statement and made due by a second one.
 */
export async function insertRelays(db: Queryable, purpose: string, source: Sql): Promise<void> {
  const late = await db.many(
    QueueKey,
    sql`
    with source as (${source}), given as (select *, ${derived} from source), made as (
      insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone,
        state, next_attempt_at, check_at, created_at)
      select network, ${purpose}, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone,
        'waiting', now(), valid_before, created_at
      from given order by network, nonce_space, signer, nonce
      returning network, alone, organisation_id, purpose, signer
    ), ${makingDue}`,
  )
  if (late.length > 0) await makeDue(db, late)
}

/**
 * Stores relays that are only watched: somebody else sends them, and they need no queue. A seller of this deployment may store a relay of its own
 * with the nonce.
 */
export async function insertWatched(db: Queryable, purpose: string, source: Sql): Promise<void> {
  await db.run(sql`
    with source as (${source}), given as (select *, ${derived} from source)
    insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone,
      is_watched, state, check_at, created_at)
    select network, ${purpose}, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone,
      true, 'watched', now() + interval '1 second', created_at
    from given order by network, nonce_space, signer, nonce`)
}

/** Whether relays were not stored because another relay of their kind, sent or watched, has the nonce of one of them. */
export function isNonceTaken(error: unknown): boolean {
  return (
    breaksUnique(error, 'relays_network_nonce_space_signer_nonce_key') || breaksUnique(error, 'relays_watched_by_nonce')
  )
}

/**
 * The rest of a statement in which `made` returns the queues of relays that wait from now: makes them due, and returns those that
 * are not.
 */
const makingDue = sql`
    wanted as (
      select distinct network, alone, organisation_id, purpose, signer from made order by network, alone, organisation_id, purpose, signer
    ), turns_made as (
      insert into relay_turns (network, alone, organisation_id, purpose, due_at)
      select distinct network, alone, organisation_id, purpose, now() from wanted order by network, alone, organisation_id, purpose
      on conflict do nothing returning network, alone, organisation_id, purpose
    ), queues_made as (
      insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
      select network, alone, organisation_id, purpose, signer, now() from wanted order by network, alone, organisation_id, purpose, signer
      on conflict do nothing returning network, alone, organisation_id, purpose, signer
    ), turns_kept as (
      select t.network, t.alone, t.organisation_id, t.purpose, t.due_at from relay_turns t
      where (t.network, t.alone, t.organisation_id, t.purpose) in (select network, alone, organisation_id, purpose from wanted) for key share
    ), queues_kept as (
      select q.network, q.alone, q.organisation_id, q.purpose, q.signer, q.due_at from relay_queues q
      where (q.network, q.alone, q.organisation_id, q.purpose, q.signer) in (select network, alone, organisation_id, purpose, signer from wanted)
      for key share
    )
    select network, alone, organisation_id, purpose, signer from wanted
    where (network, alone, organisation_id, purpose) not in (
        select network, alone, organisation_id, purpose from turns_made
        union all select network, alone, organisation_id, purpose from turns_kept where due_at <= now())
      or (network, alone, organisation_id, purpose, signer) not in (
        select network, alone, organisation_id, purpose, signer from queues_made
        union all select network, alone, organisation_id, purpose, signer from queues_kept where due_at <= now())
    order by network, alone, organisation_id, purpose, signer`

/** Makes queues due now, whether they exist or not. */
export async function makeDue(db: Queryable, queues: readonly QueueKey[]): Promise<void> {
  await db.run(sql`
    with wanted as (select distinct * from ${keysOf(queues)}), turns as (
      insert into relay_turns (network, alone, organisation_id, purpose, due_at)
      select distinct network, alone, organisation_id, purpose, now() from wanted order by network, alone, organisation_id, purpose
      on conflict (network, alone, organisation_id, purpose) do update set due_at = least(relay_turns.due_at, excluded.due_at)
    )
    insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
    select network, alone, organisation_id, purpose, signer, now() from wanted order by network, alone, organisation_id, purpose, signer
    on conflict (network, alone, organisation_id, purpose, signer) do update set due_at = least(relay_queues.due_at, excluded.due_at)`)
}

function keysOf(queues: readonly QueueKey[], name: Sql = sql`given`): Sql {
  return sql`unnest(${queues.map(({ network }) => network)}::text[], ${queues.map(({ alone }) => alone)}::boolean[],
    ${queues.map(({ organisationId }) => organisationId)}::text[], ${queues.map(({ purpose }) => purpose)}::text[],
    ${queues.map(({ signer }) => signer)}::text[]) as ${name} (network, alone, organisation_id, purpose, signer)`
}

function turnKeysOf(turns: readonly TurnKey[], name: Sql = sql`given`): Sql {
  return sql`unnest(${turns.map(({ network }) => network)}::text[], ${turns.map(({ alone }) => alone)}::boolean[],
    ${turns.map(({ organisationId }) => organisationId)}::text[], ${turns.map(({ purpose }) => purpose)}::text[])
    as ${name} (network, alone, organisation_id, purpose)`
}

const DueRow = z.object({ network: z.string(), batch: z.boolean(), single: z.boolean(), check: z.boolean() })
export type DueRow = z.output<typeof DueRow>

/** For `n.network`: the instant since which a turn has been due; null if none is. */
const dueTurn = (slot: 'batch' | 'single'): Sql =>
  sql`(select t.due_at from relay_turns t where t.network = n.network and t.alone = ${slot === 'single'} and t.due_at <= now() order by t.due_at limit 1)`
/** For `n.network`: the instant since which a read of the chain has been due; null if none is. */
const dueCheck = sql`(select r.check_at from relays r where r.network = n.network and r.check_at is not null and r.check_at <= now()
    order by r.check_at limit 1)`

/** A condition: whether `listDue` would find anything due on the networks. */
export function isAnyDue(networks: readonly string[]): Sql {
  return onAnyOf(networks, sql`select coalesce(${dueTurn('batch')}, ${dueTurn('single')}, ${dueCheck})`)
}

/**
 * Returns for each network whether a batch, a relay that is sent singly, or a read of the chain is due: one index lookup each, since each is ordered and
 * limited to one row.
 */
export function listDue(db: Queryable, networks: readonly string[]): Promise<DueRow[]> {
  return db.many(
    DueRow,
    sql`
    select network, ${dueTurn('batch')} is not null as batch, ${dueTurn('single')} is not null as single, ${dueCheck} is not null as check
    from unnest(${anyLength(networks)}) as n (network)`,
  )
}

const PickedRow = z.object({
  organisationId: id('org'),
  /** The account of an organisation on the free plan, otherwise the organisation. */
  shareOwner: z.string(),
  purpose: z.string(),
  turn: z.bigint(),
  signer: z.string().nullable(),
  signerTurn: z.bigint().nullable(),
  relayId: z.bigint().nullable(),
  position: z.bigint().nullable(),
  /** Of an EIP-3009 authorization; null for other payloads. */
  token: z.string().nullable(),
  value: z.string().nullable(),
})
/** A queue that has its turn, and one of its relays; without a signer if an organisation has no queue that is due, except of busy signers. */
export type PickedRow = z.output<typeof PickedRow>

export interface PickBounds {
  readonly network: string
  readonly alone: boolean
  readonly purposes: readonly string[]
  /** Most turns of organisations, relays of one signer, and relays and queues of one organisation. */
  readonly turnsMax: number
  readonly rowsOfSignerMax: number
  readonly most: number
  /** Signers of whom nothing is taken, because a relay of theirs is in flight. They take no slot of others. */
  readonly busy?: readonly string[] | undefined
  /** Least remaining time of a signature. */
  readonly timeLeftMs: number
}

/**
 * Selects the next relays without locking: the organisations that were served longest ago first, their signers likewise, and of each signer its
 * first due relays that do not expire too soon. It reads an equal share of the slots for each organisation, and as many as there are slots only
 * where the shares leave some. So what it reads is bounded by these numbers and not by the backlog.
 */
export async function pickDue(db: Queryable, bounds: PickBounds): Promise<PickedRow[]> {
  const { most } = bounds
  const shares = await pickUpTo(
    db,
    bounds,
    sql`(select ceil(${most}::float8 / greatest(count(*), 1))::bigint from turns)`,
  )
  return leavesPlaces(shares, most) ? pickUpTo(db, bounds, sql`${most}::bigint`) : shares
}

/** Whether slots stay free although an organisation has used up its share of relays or signers. */
function leavesPlaces(picked: readonly PickedRow[], most: number): boolean {
  const turns = [...Map.groupBy(picked, ({ turn }) => turn).values()]
  const share = Math.ceil(most / Math.max(1, turns.length))
  const isUsedUp = turns.some((own) => own.length >= share || new Set(own.map(({ signer }) => signer)).size >= share)
  return share < most && isUsedUp && picked.filter(({ relayId }) => relayId !== null).length < most
}

/** `share`: most relays and signers of each organisation. */
function pickUpTo(db: Queryable, bounds: PickBounds, share: Sql): Promise<PickedRow[]> {
  const { network, alone, purposes, turnsMax, rowsOfSignerMax, timeLeftMs, busy = [] } = bounds
  return db.many(
    PickedRow,
    sql`
    with turns as (
      select organisation_id, purpose, row_number() over (order by due_at, organisation_id, purpose) as turn,
        coalesce(${shareOwnerSql(sql`first.organisation_id`)}, organisation_id) as share_owner
      from (
        select organisation_id, purpose, due_at from relay_turns
        where network = ${network} and alone = ${alone} and due_at <= now() and purpose = any(${anyLength(purposes)})
        order by due_at, organisation_id, purpose limit ${turnsMax}) as first
    ), picked as (
    select t.organisation_id, t.share_owner, t.purpose, t.turn, q.signer, q.turn as signer_turn, r.id as relay_id, r.position, r.token, r.value,
      row_number() over (partition by t.turn order by r.position, q.turn) as round
    from turns t
    left join lateral (
      select signer, row_number() over (order by due_at, signer) as turn from relay_queues own
      where own.network = ${network} and own.alone = ${alone} and own.organisation_id = t.organisation_id and own.purpose = t.purpose
        and ${inOrder(sql`due_at`)} and due_at <= now() and signer <> all(${busy}::text[])
      order by due_at, signer limit ${share}
    ) q on true
    left join lateral (
      select id, row_number() over (order by next_attempt_at, id) as position, payload ->> 'token' as token, payload ->> 'value' as value from relays own
      where own.network = ${network} and own.alone = ${alone} and own.organisation_id = t.organisation_id and own.purpose = t.purpose
        and own.signer = q.signer and state = 'waiting' and next_attempt_at <= now()
        and valid_before > now() + ${timeLeftMs}::integer * interval '1 millisecond'
      order by next_attempt_at, id limit ${rowsOfSignerMax}
    ) r on true
    )
    select organisation_id, share_owner, purpose, turn, signer, signer_turn, relay_id, position, token, value from picked where round <= ${share} or relay_id is null`,
  )
}

/** Queues and organisations of which nothing can be sent now. */
export interface Emptied {
  readonly queues: readonly QueueKey[]
  readonly turns: readonly TurnKey[]
}

/** Queues and organisations that a turn visited. */
export interface Visited extends Emptied {
  /** Those of `turns` of which a relay was served. */
  readonly served: readonly TurnKey[]
}

/** For `relay_queues q`: whether nothing in it can be sent now. */
const isEmpty = (timeLeftMs: number): Sql => sql`(select true from relays r
        where ${isOwn} and next_attempt_at <= now() and valid_before > now() + ${timeLeftMs}::integer * interval '1 millisecond' limit 1) is null`
/** For `relays r` and `relay_queues q`: whether the relay waits in the queue. */
const isOwn = sql`r.network = q.network and r.alone = q.alone and r.organisation_id = q.organisation_id and r.purpose = q.purpose
          and r.signer = q.signer and r.state = 'waiting'`
/** For `relay_queues q` and `relay_turns t`: whether the queue is one of the organisation's. */
const isOfTurn = sql`q.network = t.network and q.alone = t.alone and q.organisation_id = t.organisation_id and q.purpose = t.purpose`

const LockedRow = QueueKey.extend({ signer: z.string().nullable() })

/**
 * Ends a visit: a queue with more to send moves behind all others, one in which nothing is due is postponed until something is,
 * and an empty one is removed; organisations likewise. Organisations of which only busy signers wait keep their order, before those that were served.
 * The other organisations of a served one's share owner move behind those of all other owners,
 * in their order: an owner's turns are as frequent with ten organisations as with one. A concurrent enqueue has the row locked for key share, and then it stays
 * due. The second statement sees what is committed by then. It skips locked rows: a row that is being made due stays as it is.
 */
export async function endVisit(tx: Tx, { queues, turns, served }: Visited, timeLeftMs: number): Promise<void> {
  if (queues.length === 0 && turns.length === 0) return
  const locked = await tx.many(
    LockedRow,
    sql`
    with queues as materialized (
      select q.network, q.alone, q.organisation_id, q.purpose, q.signer from relay_queues q join ${keysOf(queues)}
        using (network, alone, organisation_id, purpose, signer)
      where ${isEmpty(timeLeftMs)}
      order by q.network, q.alone, q.organisation_id, q.purpose, q.signer for update of q skip locked
    ), turns as materialized (
      select t.network, t.alone, t.organisation_id, t.purpose from relay_turns t join ${turnKeysOf(turns)}
        using (network, alone, organisation_id, purpose)
      where coalesce((select q.due_at from relay_queues q where ${isOfTurn} and ${inOrder(sql`q.due_at`)}
        and (q.network, q.alone, q.organisation_id, q.purpose, q.signer) not in (select * from queues) order by q.due_at limit 1), 'infinity') > now()
      order by t.network, t.alone, t.organisation_id, t.purpose for update of t skip locked
    )
    select * from queues union all select *, null from turns`,
  )
  const ownQueues = locked.flatMap(({ signer, ...turn }) => (signer === null ? [] : [{ ...turn, signer }]))
  const ownTurns = locked.filter(({ signer }) => signer === null)
  await tx.run(sql`
    with visited as materialized (
      select q.network, q.alone, q.organisation_id, q.purpose, q.signer from relay_queues q join ${keysOf(queues)}
        using (network, alone, organisation_id, purpose, signer)
      order by q.network, q.alone, q.organisation_id, q.purpose, q.signer for no key update of q skip locked
    ), next as materialized (
      select q.*, own.signer is not null as is_locked, (
        select min(next_attempt_at) from relays r
        where ${isOwn} and valid_before > now() + ${timeLeftMs}::integer * interval '1 millisecond') as at
      from visited q left join ${keysOf(ownQueues, sql`own`)} using (network, alone, organisation_id, purpose, signer)
    ), kept as materialized (
      select network, alone, organisation_id, purpose, signer, case when is_locked then greatest(at, now()) else now() end as due_at
      from next where not is_locked or at is not null
    ), removed as (
      delete from relay_queues q using next n where n.is_locked and n.at is null and ${isSameQueue}
    ), next_turns as materialized (
      select t.network, t.alone, t.organisation_id, t.purpose, own.purpose is not null as is_locked,
        case when served.purpose is null then row_number() over (order by t.due_at desc, t.organisation_id desc) else 0 end as later, least(
        (select due_at from relay_queues q
          where ${isOfTurn} and ${inOrder(sql`q.due_at`)}
            and (q.network, q.alone, q.organisation_id, q.purpose, q.signer) not in (select network, alone, organisation_id, purpose, signer from next)
          order by due_at limit 1),
        (select min(due_at) from kept q where ${isOfTurn})) as at
      from (
        select t.network, t.alone, t.organisation_id, t.purpose, t.due_at from relay_turns t join ${turnKeysOf(turns)}
          using (network, alone, organisation_id, purpose)
        order by t.network, t.alone, t.organisation_id, t.purpose for no key update of t skip locked
      ) t left join ${turnKeysOf(ownTurns, sql`own`)} using (network, alone, organisation_id, purpose)
        left join ${turnKeysOf(served, sql`served`)} using (network, alone, organisation_id, purpose)
    ), turns_removed as (
      delete from relay_turns t using next_turns n where n.is_locked and n.at is null and ${isSameTurn}
    ), turns_kept as (
      update relay_turns t set due_at = case when n.is_locked then greatest(n.at, now()) else now() - n.later * interval '1 microsecond' end
      from next_turns n where not (n.is_locked and n.at is null) and ${isSameTurn}
    ), others as materialized (
      select t.network, t.alone, t.organisation_id, t.purpose, t.due_at from relay_turns t
      where (t.network, t.alone, t.organisation_id, t.purpose) in (
          select network, alone, sharer.id, purpose from ${turnKeysOf(served)} cross join lateral (${sharersOf(sql`organisation_id`)}) as sharer)
        and (t.network, t.alone, t.organisation_id, t.purpose) not in (select * from ${turnKeysOf(turns)}) and t.due_at <= now()
      order by t.network, t.alone, t.organisation_id, t.purpose for no key update of t skip locked
    ), behind as (
      update relay_turns t set due_at = now() - n.later * interval '1 microsecond'
      from (select *, row_number() over (order by due_at desc, organisation_id desc) as later from others) n where ${isSameTurn}
    )
    update relay_queues q set due_at = n.due_at from kept n where ${isSameQueue}`)
}

/** For `relay_turns t` and keys `n`, and for `relay_queues q` and keys `n`. */
const isSameTurn = sql`t.network = n.network and t.alone = n.alone and t.organisation_id = n.organisation_id and t.purpose = n.purpose`
const isSameQueue = sql`q.network = n.network and q.alone = n.alone and q.organisation_id = n.organisation_id and q.purpose = n.purpose
        and q.signer = n.signer`

/**
 * Returns the queues of relays that have waited this long although they are due, if the queue is missing or postponed. There are
 * none unless a process died between two steps. Only the oldest waiting relays are read, so that each is reached in time.
 */
export function listForgotten(db: Queryable, network: string, waitedMs: number): Promise<QueueKey[]> {
  return db.many(
    QueueKey,
    sql`
    select distinct r.network, r.alone, r.organisation_id, r.purpose, r.signer from unnest(array[false, true]) as slot (alone) cross join lateral (
      select network, alone, organisation_id, purpose, signer from relays
      where network = ${network} and alone = slot.alone and state = 'waiting' and ${inOrder(sql`next_attempt_at`)}
        and next_attempt_at <= now() - ${waitedMs}::integer * interval '1 millisecond'
        and valid_before > now()
      order by next_attempt_at limit 1000) r
    where (select true from relay_queues q where q.network = r.network and q.alone = r.alone and q.organisation_id = r.organisation_id
        and q.purpose = r.purpose and q.signer = r.signer and q.due_at <= now() limit 1) is null
      or (select true from relay_turns t where t.network = r.network and t.alone = r.alone and t.organisation_id = r.organisation_id
        and t.purpose = r.purpose and t.due_at <= now() limit 1) is null`,
  )
}

/**
 * Makes relays due, in the queue of those that are sent singly where they are; only those that wait and were not released before.
 */
export async function releaseRelays(db: Queryable, relayIds: readonly bigint[]): Promise<void> {
  const late = await db.many(
    QueueKey,
    sql`
    with made as (
      update relays set next_attempt_at = now(), check_at = valid_before where ${amongWaiting(relayIds)}
      returning network, alone, organisation_id, purpose, signer
    ), ${makingDue}`,
  )
  if (late.length > 0) await makeDue(db, late)
}

/** Makes relays that would share a transaction be sent singly from now on. */
export async function setSingle(tx: Tx, relayIds: readonly bigint[]): Promise<void> {
  const late = await tx.many(
    QueueKey,
    sql`
    with made as (
      update relays set alone = true where id = any(${relayIds}::bigint[]) and state = 'waiting'
      returning network, alone, organisation_id, purpose, signer
    ), ${makingDue}`,
  )
  if (late.length > 0) await makeDue(tx, late)
}
