import type { Address } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { generation } from './compare-store.ts'

export interface LaneKey {
  readonly network: string
  readonly sender: Address
}

const HexText = z.templateLiteral(['0x', z.string()])

/** The nonce that the lane gives next; undefined while it has not begun. */
export async function findNextNonce(db: Queryable, lane: LaneKey): Promise<bigint | undefined> {
  const row = await db.maybeOne(
    z.object({ nextNonce: z.bigint() }),
    sql`
    select next_nonce from lanes where network = ${lane.network} and sender = ${lane.sender}`,
  )
  return row?.nextNonce
}

/** Makes the lane begin at the chain's nonce; a lane that is there keeps its own count. */
export async function insertLane(db: Queryable, lane: LaneKey, firstNonce: bigint): Promise<void> {
  await db.run(
    sql`insert into lanes (network, sender, next_nonce, generation) values (${lane.network}, ${lane.sender}, ${firstNonce}, ${generation}) on conflict do nothing`,
  )
}

/** Longest that a transaction which took a nonce may idle: a planner whose host is gone blocks its lane for no longer. */
const idleMsMax = 4_000

const Taken = z.object({ network: z.string(), sender: HexText, firstNonce: z.bigint(), isCompared: z.boolean() })

/**
 * Takes each lane's next nonces, so many of each, under its row's lock: two transactions never share one, and none is skipped. Lanes are locked
 * in one order, so that none wait crosswise. From here on the caller's transaction may not idle for long. Returns the first nonce of each.
 * Throws `service-unavailable` for a lane that was not compared with the chain since the last restore.
 */
export async function takeNonces(
  tx: Tx,
  wanted: readonly { readonly lane: LaneKey; readonly count: number }[],
): Promise<z.output<typeof Taken>[]> {
  const taken = await tx.many(
    Taken,
    sql`
    with wanted as (
      select * from unnest(${wanted.map(({ lane }) => lane.network)}::text[], ${wanted.map(({ lane }) => lane.sender)}::text[],
        ${wanted.map(({ count }) => count)}::integer[]) as given (network, sender, count)
    ), locked as (
      select l.network, l.sender, w.count from lanes l join wanted w using (network, sender) order by l.network, l.sender for update of l
    )
    update lanes l set next_nonce = l.next_nonce + h.count from locked h where l.network = h.network and l.sender = h.sender
    returning l.network, l.sender, l.next_nonce - h.count as first_nonce, l.generation >= ${generation} as is_compared,
      set_config('idle_in_transaction_session_timeout', ${String(idleMsMax)}, true)`,
  )
  if (taken.some(({ isCompared }) => !isCompared))
    throw failPlatform('service-unavailable', {}, new Error('a lane is still compared with the chain after a restore'))
  return taken
}
