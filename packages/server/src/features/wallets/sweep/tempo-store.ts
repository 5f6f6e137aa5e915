import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { columns, isScreened, keysOf, type TransferKey, TransferRow } from './transfer-store.ts'

/** Transfers of a network without a transaction whose senders are screened: those with fewer attempts first, then the oldest. */
export function listPlanned(
  db: Queryable,
  network: string,
  { most }: { readonly most: number },
): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where t.network = ${network} and t.status = 'planned' and ${isScreened}
    order by t.attempt, t.created_at, t.from_address limit ${most}`,
  )
}

/** Counts an attempt of each before it is made, so that those that fail every time, even by crashing a process, come after the others. */
export async function markTried(db: Queryable, transfers: readonly TransferRow[]): Promise<void> {
  if (transfers.length === 0) return
  await db.run(sql`
    update sweep_transfers set attempt = attempt + 1
    where status = 'planned' and (sweep_id, child_address_id) in (${keysOf(transfers)})`)
}

/** Number of transfers of a network that have a transaction without an outcome. */
export async function countSent(db: Queryable, network: string): Promise<number> {
  const statement = sql`select count(*) as sent from sweep_transfers where network = ${network} and status = 'sent'`
  return Number((await db.one(z.object({ sent: z.bigint() }), statement)).sent)
}

/**
 * Locks a transfer without a transaction; undefined if it has one, waits for the screening of a sender, or is locked by another process.
 */
export function lockPlanned(
  tx: Tx,
  { sweepId, childAddressId }: TransferKey,
  screening: 'screened' | 'any',
): Promise<TransferRow | undefined> {
  return tx.maybeOne(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where sweep_id = ${sweepId} and child_address_id = ${childAddressId} and status = 'planned'
      and (${screening === 'any'} or ${isScreened})
    for update skip locked`,
  )
}

/** Expired transfers of a network without a transaction: those with fewer attempts first, then the oldest. */
export function listExpired(db: Queryable, network: string, before: Date, most: number): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where network = ${network} and status = 'planned' and valid_before < ${before}
    order by attempt, created_at limit ${most}`,
  )
}

/** Assigns transfers the transaction that carries them. */
export async function assignTransaction(
  tx: Tx,
  transfers: readonly TransferKey[],
  transactionId: string,
): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set status = 'sent', chain_transaction_id = ${transactionId}, attempt = attempt + 1
    where (sweep_id, child_address_id) in (${keysOf(transfers)})`)
}

const SentRow = TransferRow.extend({ chainTransactionId: id('ctx') })

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
