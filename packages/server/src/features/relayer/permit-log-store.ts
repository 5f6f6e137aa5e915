import type { Hex } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import type { StoredPermit2 } from './port.ts'

interface SettlingLogs {
  readonly network: string
  readonly transactionHash: Hex
  /** Indexes of logs in the transaction's receipt. */
  readonly logIndexes: readonly number[]
}

const Row = z.object({ isTaken: z.boolean() })

/**
 * Assigns one of the logs to a permit, because each log proves one permit only. Returns whether the permit has a log. It
 * keeps the log, also if this process dies, while the transaction has it: after a reorganization the same transaction may
 * have fewer logs. Throws if another permit claims the log at the same time; the caller must retry.
 */
export async function claimLogIndex(
  db: Queryable,
  { network, transactionHash, logIndexes }: SettlingLogs,
  { owner, nonce }: Pick<StoredPermit2, 'owner' | 'nonce'>,
): Promise<boolean> {
  const { isTaken } = await db.one(
    Row,
    sql`
    with own as (
      select from permit_places where network = ${network} and owner = ${owner.toLowerCase()} and nonce = ${nonce} and transaction_hash = ${transactionHash}
        and place = any(${logIndexes}::integer[])
    ), free as (
      select place from unnest(${logIndexes}::integer[]) as given (place)
      where not exists (select from own) and not exists (
        select from permit_places taken where taken.network = ${network} and taken.transaction_hash = ${transactionHash} and taken.place = given.place)
      order by place limit 1
    ), taken as (
      insert into permit_places (network, transaction_hash, place, owner, nonce)
      select ${network}, ${transactionHash}, place, ${owner.toLowerCase()}, ${nonce} from free
      on conflict (network, owner, nonce) do update set transaction_hash = excluded.transaction_hash, place = excluded.place
      returning 1
    )
    select exists (select from own) or exists (select from taken) as is_taken`,
  )
  return isTaken
}
