import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { TransferId } from './store.ts'

/** The allowance of one contract for one token of one account. One transfer at a time approves and calls. */
export interface Unit {
  readonly network: string
  readonly owner: string
  readonly token: string
  readonly spender: string
}

export type ApprovalState = 'waiting' | 'active' | 'ended'

const StateRow = z.object({ state: z.enum(['waiting', 'active', 'ended']) })

/**
 * Adds a transfer to the queue of its unit. `active`: it may approve and call now; `waiting`: another is before it. The caller has locked
 * the owner's funds, so that two concurrent transfers do not both find the unit free. A transfer that is already in the unit stays as it
 * is.
 */
export async function enterUnit(tx: Tx, transferId: TransferId, unit: Unit): Promise<ApprovalState> {
  const { network, owner, token, spender } = lower(unit)
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

/** Makes a waiting transfer the active one if it is the first of its unit. Returns its state; undefined without a unit. */
export async function advanceUnit(db: Queryable, transferId: TransferId): Promise<ApprovalState | undefined> {
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

/** Removes a transfer that does not need its approval any more from its unit's queue. */
export async function leaveUnit(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`delete from approvals where transfer_id = ${transferId}`)
}

/** Ends the units of transfers whose contracts can take none of their tokens any more, so that the next of each unit begins. */
export async function endUnits(db: Queryable, transferIds: readonly TransferId[]): Promise<void> {
  if (transferIds.length === 0) return
  await db.run(
    sql`update approvals set state = 'ended' where transfer_id = any(${transferIds}::text[]) and state <> 'ended'`,
  )
}

/** Whether another transfer is active in the unit. */
export async function isUnitTaken(db: Queryable, transferId: TransferId, unit: Unit): Promise<boolean> {
  const { network, owner, token, spender } = lower(unit)
  const row = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (select from approvals where network = ${network} and owner = ${owner} and token = ${token} and spender = ${spender}
      and state = 'active' and transfer_id <> ${transferId}) as is`,
  )
  return row.is
}

function lower({ network, owner, token, spender }: Unit): Unit {
  return { network, owner: owner.toLowerCase(), token: token.toLowerCase(), spender: spender.toLowerCase() }
}
