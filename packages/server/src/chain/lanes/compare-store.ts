import type { Address } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/due-checks.ts'

export interface LaneKey {
  readonly network: string
  readonly sender: Address
}

/** Hexadecimal text as stored: "0x" followed by digits. */
const HexText = z.templateLiteral(['0x', z.string()])

/** The database's generation. A lane must have it to plan. 0 before the database was first served. */
export const generation = sql`coalesce((select generation from witness_state), 0)`

/** A condition: whether any lane on the networks was not compared with the chain since the last restore. */
export function isAnyUncompared(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select l.sender from lanes l where l.network = n.network and l.generation < ${generation} order by l.generation, l.sender limit 1`,
  )
}

/** Accounts whose lanes were not compared with the chain since the last restore, ordered by address, starting after `page.after`. */
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
  /** Every nonce below this one is final. */
  lowestOpen: z.bigint(),
  isFilling: z.boolean(),
})
export type LanePlace = z.output<typeof LanePlace>

/** The lane's nonces, locked until the transaction ends; undefined when the lane was already compared. */
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

/** Marks the lane as compared, so that it can plan again. */
export async function markCompared(tx: Tx, { network, sender }: LaneKey): Promise<void> {
  await tx.run(sql`update lanes set generation = ${generation} where network = ${network} and sender = ${sender}`)
}

export async function moveNextNonce(tx: Tx, { network, sender }: LaneKey, nextNonce: bigint): Promise<void> {
  await tx.run(sql`update lanes set next_nonce = ${nextNonce} where network = ${network} and sender = ${sender}`)
}
