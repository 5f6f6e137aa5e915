import type { Address, Network } from '@purser/protocol'
import { z } from 'zod'
import type { RouteQuote } from '../../partners/routing/port.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { type DueCursors, listDueChecks } from '../plans/index.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** Marks that a block shows the money at the partner's contract; it may still be reorganized. */
export async function markLeft(
  tx: Tx,
  transferId: TransferId,
  seen: { readonly hash: string; readonly now: Date },
): Promise<void> {
  await tx.run(sql`
    update transfers set tx_hash = ${seen.hash}, reason = null, left_at = ${seen.now} where id = ${transferId} and ended_at is null`)
}

/** Sets the next poll; null for none until something else happens. */
export async function setNextPollAt(tx: Tx, transferId: TransferId, nextPollAt: Date | null): Promise<void> {
  await tx.run(sql`update transfers set look_at = ${nextPollAt} where id = ${transferId} and ended_at is null`)
}

/** Replaces the quote of a transfer that expired before the transfer began. */
export async function replaceQuote(tx: Tx, transferId: TransferId, quote: RouteQuote): Promise<void> {
  await tx.run(sql`
    update transfers set partner_reference = ${quote.reference}, quote_expires_at = ${quote.expiresAt}, raw_out = ${quote.rawOut.toString()},
      raw_out_min = ${quote.rawOutMin.toString()}, look_at = null
    where id = ${transferId} and ended_at is null`)
}

export async function setPartnerStatus(tx: Tx, transferId: TransferId, partnerStatus: string): Promise<void> {
  await tx.run(sql`
    update transfers set partner_status = ${partnerStatus} where id = ${transferId} and partner_status is distinct from ${partnerStatus}`)
}

export interface Arrival {
  readonly rawReceived: bigint | undefined
  readonly receivedToken: string | undefined
  readonly destinationTxHash: string | undefined
  readonly now: Date
}

/** Stores the arrival that the partner reports; the caller has locked the row. */
export async function markArrived(tx: Tx, transferId: TransferId, arrival: Arrival): Promise<void> {
  await tx.run(sql`
    update transfers set raw_received = ${arrival.rawReceived?.toString() ?? null}, received_token = ${arrival.receivedToken ?? null},
      destination_tx_hash = ${arrival.destinationTxHash ?? null}, confirmed_at = ${arrival.now}
    where id = ${transferId} and ended_at is null`)
}

/**
 * Assigns the delivered message to a transfer, and releases the message that it had before. Returns false, and changes nothing, if the
 * message belongs to another transfer. The caller has locked the row; of two concurrent calls the index refuses the second.
 */
export async function takeMessage(
  tx: Tx,
  { id, toNetwork }: Pick<TransferRow, 'id' | 'toNetwork'>,
  message: string,
): Promise<boolean> {
  const changed = await tx.run(sql`
    update transfers set partner_message = ${message}
    where id = ${id} and not exists (
      select from transfers where to_network = ${toNetwork} and partner_message = ${message} and id <> ${id})`)
  return changed === 1
}

/** A condition: whether any partner transfer is due for a poll. */
export function isAnyDueForPoll(now: Date): Sql {
  return sql`(select look_at from transfers where look_at <= ${now} and ended_at is null and partner is not null order by look_at limit 1) is not null`
}

const DueForPoll = TransferRow.extend({
  /** Whether a step has no transaction yet: the poll assigns one, and queries no partner. */
  hasStep: z.boolean(),
})
export type DueForPoll = z.output<typeof DueForPoll>

/**
 * The key by which due transfers are listed: the partner, if the money has left its network; otherwise partner and network, because the next step
 * may read a node. Migration 0247 indexes it.
 */
const sourceOf = sql`case when left_at is null then 'leaves ' || partner || ' ' || from_network else 'left ' || partner end`

/** Due transfers, as `listDueChecks` reads them. The expression of the time keeps a list from reading the index of all due transfers instead. */
const toPoll = sql`(
  select id, organisation_id, ${sourceOf} as network, coalesce(look_at, 'infinity') as check_at from transfers
  where look_at is not null and ended_at is null)`

const SourceOfRow = z.object({ source: z.string() })

/** Returns the sources that have due transfers. */
async function listSourcesToPoll(tx: Tx, now: Date): Promise<string[]> {
  const rows = await tx.many(
    SourceOfRow,
    sql`
    with recursive sources as (
      (select t.network as source from ${toPoll} t where t.network is not null order by 1 limit 1)
      union all
      select (select t.network from ${toPoll} t where t.network > s.source order by 1 limit 1) from sources s where s.source is not null
    )
    select source from sources s where s.source is not null and (
      select t.check_at from ${toPoll} t where t.network = s.source and t.check_at <= ${now} order by t.check_at limit 1) is not null`,
  )
  return rows.map(({ source }) => source)
}

/** Most due transfers of one list key in one read. */
const perSourceMax = 100

/**
 * Partner transfers that are due for a poll, in shares of their owners. A partner that does not respond hides no transfer of others, whatever the
 * number of organisations and transfers that wait for it. The transaction must read in order.
 */
export async function listDueForPoll(
  tx: Tx,
  { now, cursors }: { readonly now: Date; readonly cursors: DueCursors },
): Promise<DueForPoll[]> {
  const dueIds: string[] = []
  for (const network of await listSourcesToPoll(tx, now))
    dueIds.push(
      ...(await listDueChecks(tx, {
        table: toPoll,
        network,
        now: sql`${now}::timestamptz`,
        most: perSourceMax,
        cursors,
      })),
    )
  if (dueIds.length === 0) return []
  return tx.many(
    DueForPoll,
    sql`
    -- The limit makes PostgreSQL look each transfer up, and not read all transfers for the join.
    select t.*, exists (select from transfer_steps s where s.transfer_id = t.id and s.transaction_id is null) as has_step
    from unnest(${dueIds}::text[]) with ordinality as given (due_id, place) cross join lateral (
      select ${columns} from transfers where id = due_id and ended_at is null limit 1) t
    order by place`,
  )
}

/** The allowance of one contract for one token of one account. One transfer at a time approves and calls. */
export interface AllowanceKey {
  readonly network: Network
  readonly owner: Address
  readonly token: Address
  readonly spender: Address
}

export type AllowanceTurn = 'waiting' | 'active' | 'ended'

const StateRow = z.object({ state: z.enum(['waiting', 'active', 'ended']) })

/**
 * Adds a transfer to the queue for an allowance. `active`: it may approve and call now; `waiting`: another transfer is before it. The caller has
 * locked the owner's funds, so that two concurrent transfers do not both find the allowance free. A transfer that is already in the queue stays.
 */
export async function joinAllowanceQueue(tx: Tx, transferId: TransferId, key: AllowanceKey): Promise<AllowanceTurn> {
  const { network, owner, token, spender } = lower(key)
  const row = await tx.one(
    StateRow,
    sql`
    insert into approvals (transfer_id, network, owner, token, spender, state)
    values (${transferId}, ${network}, ${owner}, ${token}, ${spender}, case when exists (
      select from approvals
      where network = ${network} and owner = ${owner} and token = ${token} and spender = ${spender} and state <> 'ended'
        and transfer_id <> ${transferId}
    ) then 'waiting' else 'active' end)
    on conflict (transfer_id) do update set network = excluded.network, owner = excluded.owner, token = excluded.token, spender = excluded.spender,
      state = case when (approvals.network, approvals.owner, approvals.token, approvals.spender)
        = (excluded.network, excluded.owner, excluded.token, excluded.spender) then approvals.state else excluded.state end
    returning state`,
  )
  return row.state
}

/** Makes a waiting transfer the active one if it is the first of its queue. Returns its turn; undefined if it is in no queue. */
export async function advanceAllowanceQueue(db: Queryable, transferId: TransferId): Promise<AllowanceTurn | undefined> {
  const row = await db.maybeOne(
    StateRow,
    sql`
    with advanced as (
      update approvals a set state = 'active'
      where a.transfer_id = ${transferId} and a.state = 'waiting' and not exists (
        select from approvals o
        where o.network = a.network and o.owner = a.owner and o.token = a.token and o.spender = a.spender and o.transfer_id <> a.transfer_id
          and (o.state = 'active' or (o.state = 'waiting' and o.seq < a.seq)))
      returning state
    )
    select coalesce((select state from advanced), state) as state from approvals where transfer_id = ${transferId}`,
  )
  return row?.state
}

/** Removes a transfer that does not need its allowance any more from the queue. */
export async function leaveAllowanceQueue(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`delete from approvals where transfer_id = ${transferId}`)
}

/** Ends the turns of transfers whose contracts can take none of their tokens any more, so that the next of each queue begins. */
export async function endAllowanceTurns(db: Queryable, transferIds: readonly TransferId[]): Promise<void> {
  await db.run(
    sql`update approvals set state = 'ended' where transfer_id = any(${transferIds}::text[]) and state <> 'ended'`,
  )
}

/** Whether another transfer uses the allowance. */
export async function isAllowanceInUse(db: Queryable, transferId: TransferId, key: AllowanceKey): Promise<boolean> {
  const { network, owner, token, spender } = lower(key)
  const row = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (select from approvals where network = ${network} and owner = ${owner} and token = ${token} and spender = ${spender}
      and state = 'active' and transfer_id <> ${transferId}) as is`,
  )
  return row.is
}

/** The columns of an allowance. */
function lower({ network, owner, token, spender }: AllowanceKey) {
  return {
    network: network.name,
    owner: owner.toLowerCase(),
    token: token.toLowerCase(),
    spender: spender.toLowerCase(),
  }
}
