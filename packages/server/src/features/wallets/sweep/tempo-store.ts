import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { PlannedBounds } from '../../relayer/index.ts'
import { keyOf, listPlannedNames } from './relay-store.ts'
import { columns, isScreened, keysOf, SweepTransferRow, type TransferKey } from './transfer-store.ts'

const PlannedRow = SweepTransferRow.extend({ shareOwner: z.string(), isScreened: z.boolean() })
/** `isScreened`: the senders of its child's recent deposits are screened, and no trace of flagged money is unfinished. */
export type PlannedRow = z.output<typeof PlannedRow>

/** Transfers of a network without a transaction, in shares of their owners, those that were tried longest ago first. The transaction must read in order. */
export async function listPlanned(db: Queryable, network: string, due: PlannedBounds): Promise<PlannedRow[]> {
  const names = await listPlannedNames(db, network, due)
  if (names.length === 0) return []
  return db.many(
    PlannedRow,
    sql`
    select ${columns}, t.share_owner, ${isScreened} as is_screened from sweep_transfers t
    where (t.sweep_id, t.child_address_id) in (${keysOf(names.map(keyOf))}) and t.status = 'planned'
    order by array_position(${names}::text[], t.sweep_id || ' ' || t.child_address_id)`,
  )
}

/** Notes an attempt of each before it is made, so that those that fail every time, even by crashing a process, come after the others. */
export async function markTried(db: Queryable, transfers: readonly TransferKey[]): Promise<void> {
  if (transfers.length === 0) return
  await db.run(sql`
    update sweep_transfers set tried_at = now() where status = 'planned' and (sweep_id, child_address_id) in (${keysOf(transfers)})`)
}

const SentCount = z.object({ shareOwner: z.string(), sent: z.bigint().transform(Number) })

/** By owner, the number of transfers of a network that have a transaction without an outcome. */
export async function countSent(db: Queryable, network: string): Promise<Map<string, number>> {
  const rows = await db.many(
    SentCount,
    sql`
    select share_owner, count(*) as sent from sweep_transfers
    where network = ${network} and status = 'sent' and chain_transaction_id is not null group by share_owner`,
  )
  return new Map(rows.map(({ shareOwner, sent }) => [shareOwner, sent]))
}

/**
 * Locks a transfer without a transaction; undefined if it has one, waits for the screening of a sender, or is locked by another process.
 */
export function lockPlanned(
  tx: Tx,
  { sweepId, childAddressId }: TransferKey,
  screening: 'screened' | 'any',
): Promise<SweepTransferRow | undefined> {
  return tx.maybeOne(
    SweepTransferRow,
    sql`
    select ${columns} from sweep_transfers t where sweep_id = ${sweepId} and child_address_id = ${childAddressId} and status = 'planned'
      and (${screening === 'any'} or ${isScreened})
    for update skip locked`,
  )
}

/** Assigns transfers the transaction that carries them. */
export async function assignTransaction(
  tx: Tx,
  transfers: readonly TransferKey[],
  transactionId: string,
): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set status = 'sent', chain_transaction_id = ${transactionId}
    where (sweep_id, child_address_id) in (${keysOf(transfers)})`)
}

const SentRow = SweepTransferRow.extend({ chainTransactionId: id('ctx') })

export function listInTransactions(
  tx: Queryable,
  transactionIds: readonly string[],
): Promise<z.output<typeof SentRow>[]> {
  return tx.many(
    SentRow,
    sql`
    select ${columns}, t.chain_transaction_id from sweep_transfers t
    where chain_transaction_id = any(${transactionIds}::text[]) and status = 'sent' order by from_address`,
  )
}

export async function markHash(tx: Tx, transactionId: string, txHash: string): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set tx_hash = ${txHash} where chain_transaction_id = ${transactionId} and status = 'sent'`)
}
