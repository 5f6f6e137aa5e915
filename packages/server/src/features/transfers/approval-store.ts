import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { TransferId } from './store.ts'

/** What one account lets one contract take of one token. One transfer at a time approves and calls. */
export interface Unit {
  readonly network: string
  readonly owner: string
  readonly token: string
  readonly spender: string
}

export type ApprovalState = 'waiting' | 'active' | 'ended'

const StateRow = z.object({ state: z.enum(['waiting', 'active', 'ended']) })

/**
 * Puts a transfer in the queue of its unit. `active`: it may approve and call at once; `waiting`: another is before it. The caller has locked the
 * owner's funds, so that two at once do not both find the unit free. One that is in the unit already stays as it is.
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

/** Makes a waiting transfer the active one of its unit where it is the first; answers its state. A transfer without a unit is undefined. */
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

/** Takes a transfer that approves nothing any more out of its unit's queue. */
export async function leaveUnit(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`delete from approvals where transfer_id = ${transferId}`)
}

/** The contracts can take nothing of these transfers' tokens any more: the next of each unit begins. */
export async function endUnits(db: Queryable, transferIds: readonly TransferId[]): Promise<void> {
  if (transferIds.length === 0) return
  await db.run(
    sql`update approvals set state = 'ended' where transfer_id = any(${transferIds}::text[]) and state <> 'ended'`,
  )
}

/** Whether another transfer than this one approves or calls. */
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
