import type { Address } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import type { LaneKey } from './nonce-store.ts'

/** A bare "0x…", as it is stored. */
const HexText = z.templateLiteral(['0x', z.string()])

/** The generation of the database, which a lane must have to plan; 0 in one that was never served. */
export const generation = sql`coalesce((select generation from witness_state), 0)`

/** Accounts whose lanes were not compared with the chain since the last restore, in the order of their addresses, from after this one on. */
export async function listUncompared(
  db: Queryable,
  network: string,
  page: { readonly after: string; readonly limit: number },
): Promise<Address[]> {
  const rows = await db.many(
    z.object({ sender: HexText }),
    sql`
    select sender from lanes where network = ${network} and generation < ${generation} and sender > ${page.after}
    order by sender limit ${page.limit}`,
  )
  return rows.map(({ sender }) => sender)
}

const LanePlace = z.object({
  nextNonce: z.bigint(),
  /** Nothing below it is open. */
  lowestOpen: z.bigint(),
  isFilling: z.boolean(),
})
export type LanePlace = z.output<typeof LanePlace>

/** Where the lane is, locked until the transaction ends; undefined where it is compared already. */
export function lockUncompared(tx: Tx, { network, sender }: LaneKey, purpose: string): Promise<LanePlace | undefined> {
  return tx.maybeOne(
    LanePlace,
    sql`
    select next_nonce,
      coalesce((select min(nonce) from chain_transactions t where t.network = l.network and t.sender = l.sender and t.status <> 'final'), next_nonce) as lowest_open,
      exists (select from chain_transactions t
        where t.network = l.network and t.sender = l.sender and t.status <> 'final' and t.purpose = ${purpose}) as is_filling
    from lanes l where network = ${network} and sender = ${sender} and generation < ${generation} for update of l`,
  )
}

/** The lane plans again. */
export async function markCompared(tx: Tx, { network, sender }: LaneKey): Promise<void> {
  await tx.run(sql`update lanes set generation = ${generation} where network = ${network} and sender = ${sender}`)
}

export async function moveNextNonce(tx: Tx, { network, sender }: LaneKey, nextNonce: bigint): Promise<void> {
  await tx.run(sql`update lanes set next_nonce = ${nextNonce} where network = ${network} and sender = ${sender}`)
}
