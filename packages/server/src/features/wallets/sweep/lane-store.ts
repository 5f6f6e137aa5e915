import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type SweepId } from '../../../platform/ids.ts'
import { StoredAddress } from '../store.ts'

const Amount = z.string().transform((text) => BigInt(text))
const Bytes = z.instanceof(Uint8Array)

/** What sending a transfer needs to know of it. The lane is the operator's, so these work for all tenants at once. */
export const TransferRow = z.object({
  sweepId: id('swp'),
  childAddressId: id('cad'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  asset: StoredAddress,
  fromAddress: StoredAddress,
  toAddress: StoredAddress,
  rawAmount: Amount,
  /** What was frozen at the child when the sweep was asked for. */
  frozenRawAmount: Amount,
  nonce: Bytes,
  validBefore: z.date(),
  signature: Bytes.nullable(),
  attempt: z.number(),
  createdAt: z.date(),
})
export type TransferRow = z.output<typeof TransferRow>

/** A transfer whose authorisation was signed. */
export type SignedTransfer = TransferRow & { readonly signature: Uint8Array }

/** A transfer to be signed, and where the child's key is. */
export const UnsignedRow = TransferRow.extend({ account: z.number(), childIndex: z.bigint().transform(Number) })
export type UnsignedRow = z.output<typeof UnsignedRow>

/** Of `sweep_transfers t`. */
export const columns = sql`sweep_id, child_address_id, t.organisation_id, t.environment, t.network, asset, from_address, to_address, raw_amount, t.frozen_raw_amount, nonce,
  valid_before, signature, attempt, t.created_at`

/** The transfers of a network that nobody has signed for yet, oldest first. */
export function listUnsigned(db: Queryable, network: string, most: number): Promise<UnsignedRow[]> {
  return db.many(
    UnsignedRow,
    sql`
    select ${columns}, account, child_index from sweep_transfers t
    join child_addresses c on c.id = child_address_id join master_wallets m on m.id = c.master_wallet_id
    where t.network = ${network} and t.status = 'planned' order by t.created_at, child_index limit ${most}`,
  )
}

/** Stores an authorisation before it can be sent anywhere; one that is there already stays. */
export async function markSigned(
  db: Queryable,
  transfer: Pick<TransferRow, 'sweepId' | 'childAddressId'>,
  signature: Uint8Array,
): Promise<void> {
  await db.run(sql`
    update sweep_transfers set status = 'signed', signature = ${signature}
    where sweep_id = ${transfer.sweepId} and child_address_id = ${transfer.childAddressId} and status = 'planned'`)
}

/**
 * Of `sweep_transfers t`: whose child was sent no money after this instant by somebody of whom screening has not said anything, since that
 * money may be part of it; what came more than five minutes after the transfer was made is not.
 */
export function isScreened(unscreenedSince: Date | undefined): Sql {
  return sql`not exists (
    select from wallet_transactions w
    where w.organisation_id = t.organisation_id and w.environment = t.environment and w.wallet_id = t.child_address_id
      and w.network = t.network and lower(w.token) = lower(t.asset) and w.direction = 'in' and w.status <> 'withdrawn'
      and w.aml_status = 'pending' and w.created_at > coalesce(${unscreenedSince ?? null}::timestamptz, 'infinity')
      and w.created_at < t.created_at + interval '5 minutes')`
}

/** Takes signed transfers of a network that are screened, oldest first; another process that looks at the same moment gets others. */
export async function lockSigned(
  tx: Tx,
  network: string,
  { most, unscreenedSince }: { readonly most: number; readonly unscreenedSince: Date | undefined },
): Promise<SignedTransfer[]> {
  const rows = await tx.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where network = ${network} and status = 'signed' and not unresolved
      and ${isScreened(unscreenedSince)}
    order by created_at, from_address limit ${most} for update skip locked`,
  )
  return rows.filter(isSigned)
}

/** Those of the transfers that still wait to be sent, held until the transaction ends. */
export async function lockStillSigned(tx: Tx, transfers: readonly TransferRow[]): Promise<SignedTransfer[]> {
  const rows = await tx.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where status = 'signed' and not unresolved and (sweep_id, child_address_id) in
      (${keysOf(transfers)})
    order by from_address for update`,
  )
  return rows.filter(isSigned)
}

function isSigned(row: TransferRow): row is SignedTransfer {
  return row.signature !== null
}

/** How many wait to be signed or sent on a network, without locking them. */
export async function countWaiting(db: Queryable, network: string): Promise<bigint> {
  const statement = sql`select count(*) as waiting from sweep_transfers where network = ${network} and status in ('planned', 'signed')`
  return (await db.one(z.object({ waiting: z.bigint() }), statement)).waiting
}

/** Ties transfers to the transaction that carries them. */
export async function assignTransaction(
  tx: Tx,
  transfers: readonly TransferRow[],
  transactionId: string,
): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set status = 'sent', chain_transaction_id = ${transactionId}, attempt = attempt + 1
    where (sweep_id, child_address_id) in (${keysOf(transfers)})`)
}

export function listInTransaction(tx: Queryable, transactionId: string): Promise<TransferRow[]> {
  return tx.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where chain_transaction_id = ${transactionId} and status = 'sent' order by from_address`,
  )
}

export async function markHash(tx: Tx, transactionId: string, txHash: string): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set tx_hash = ${txHash} where chain_transaction_id = ${transactionId} and status = 'sent'`)
}

/** Their transaction is over without them, so its hash says nothing of them any more. */
export async function markUnresolved(tx: Tx, transfers: readonly TransferRow[]): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set unresolved = true, tx_hash = null
    where status = 'sent' and (sweep_id, child_address_id) in
      (${keysOf(transfers)})`)
}

/** Transfers whose transaction is final without them: the chain must say what became of each. */
export function listUnresolved(db: Queryable, network: string, most: number): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`select ${columns} from sweep_transfers t where network = ${network} and unresolved order by created_at limit ${most}`,
  )
}

/** Transfers that wait to be sent and whose authorisation has lapsed: those that were tried less often first, then the oldest. */
export function listLapsed(db: Queryable, network: string, before: Date, most: number): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    select ${columns} from sweep_transfers t where network = ${network} and status in ('planned', 'signed') and valid_before < ${before}
    order by attempt, created_at limit ${most}`,
  )
}

/** Lets an unresolved transfer be sent again: its authorisation is still good and unused. */
export async function markWaitingAgain(db: Queryable, transfer: TransferRow): Promise<void> {
  await db.run(sql`
    update sweep_transfers set status = 'signed', unresolved = false, chain_transaction_id = null, tx_hash = null
    where sweep_id = ${transfer.sweepId} and child_address_id = ${transfer.childAddressId} and status = 'sent' and unresolved`)
}

/** Holds the sweeps of transfers about to end, in one order, so that the last to end sees that it is the last. */
export async function lockSweeps(tx: Tx, sweepIds: readonly SweepId[]): Promise<void> {
  await tx.many(
    z.object({ id: id('swp') }),
    sql`select id from sweeps where id = any(${sweepIds}::text[]) order by id for update`,
  )
}

/** Ends transfers that were under way; answers the children of those that moved, so that each is told once. */
export async function markEnded(
  tx: Tx,
  transfers: readonly TransferRow[],
  end: { readonly status: 'swept'; readonly txHash: string } | { readonly status: 'failed'; readonly reason: string },
): Promise<ReadonlySet<string>> {
  const [txHash, reason] = end.status === 'swept' ? [end.txHash, null] : [null, end.reason]
  const rows = await tx.many(
    z.object({ childAddressId: id('cad') }),
    sql`
    update sweep_transfers set status = ${end.status}, tx_hash = ${txHash}, failure_reason = ${reason}, unresolved = false
    where status in ('planned', 'signed', 'sent') and (sweep_id, child_address_id) in
      (${keysOf(transfers)})
    returning child_address_id`,
  )
  return new Set(rows.map((row) => row.childAddressId))
}

/** The keys of transfers, as a statement of two columns. */
export function keysOf(transfers: readonly Pick<TransferRow, 'sweepId' | 'childAddressId'>[]): Sql {
  const sweepIds = transfers.map(({ sweepId }) => sweepId)
  const childIds = transfers.map(({ childAddressId }) => childAddressId)
  return sql`select * from unnest(${sweepIds}::text[], ${childIds}::text[])`
}
