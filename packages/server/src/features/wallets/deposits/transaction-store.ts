import { chains, type NetworkName } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { boundsOf, filtered, type ListedRows, listRows, type Period, within } from '../../../platform/db/page.ts'
import { type Id, id } from '../../../platform/ids.ts'
import { type Booking, transactionKinds } from './booking.ts'

export const transactionStatuses = ['pending', 'confirmed', 'withdrawn'] as const

export const TransactionRow = z.object({
  id: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  network: z.string(),
  chain: z.enum(chains),
  txHash: StoredHex,
  logIndex: z.number(),
  direction: z.enum(['in', 'out']),
  kind: z.enum(transactionKinds),
  status: z.enum(transactionStatuses),
  token: StoredHex,
  tokenSymbol: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  from: StoredHex,
  to: StoredHex,
  blockNumber: z.bigint(),
  blockHash: StoredHex,
  amlStatus: z.enum(['pending', 'clear', 'flagged']),
  frozenRawAmount: StoredBigInt,
  eventId: z.string().nullable(),
  createdAt: z.date(),
  confirmedAt: z.date().nullable(),
})
export type TransactionRow = z.output<typeof TransactionRow>
/** A row with the columns that are compared with the chain. */
export type KnownRow = TransactionRow

/** The columns of a `TransactionRow`. */
export const columns = sql`id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token, token_symbol,
  decimals, raw_amount, from_address as from, to_address as to, block_number, block_hash, aml_status, frozen_raw_amount, event_id, created_at,
  confirmed_at`

/** The rows that these organisations have of these transactions, including withdrawn ones; locked until the transaction ends. */
export function lockRowsOf(
  tx: Tx,
  network: NetworkName,
  txHashes: readonly string[],
  organisationIds: readonly string[],
): Promise<TransactionRow[]> {
  return tx.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions where network = ${network} and tx_hash = any(${txHashes})
      and organisation_id = any(${organisationIds})
    order by id for update`,
  )
}

/** The organisation's rows of a transaction, including withdrawn ones. */
export function listKnownRows(
  db: Queryable,
  network: NetworkName,
  txHash: string,
  organisationId: string,
): Promise<TransactionRow[]> {
  return db.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions where network = ${network} and tx_hash = ${txHash} and organisation_id = ${organisationId} order by id`,
  )
}

/** Screening status of a row's sender at booking time, whether the row is on hold, and whether it is due for screening. */
export interface BookedAml {
  readonly status: 'pending' | 'clear' | 'flagged'
  readonly isOnHold: boolean
  readonly isScreened: boolean
}

function columnsOf(booking: Booking) {
  return {
    organisation_id: booking.tenant.organisationId,
    environment: booking.tenant.environment,
    wallet_id: booking.walletId,
    chain: booking.chain,
    tx_hash: booking.txHash,
    log_index: booking.logIndex,
    direction: booking.direction,
    kind: booking.kind,
    token: booking.token.address,
    token_symbol: booking.token.symbol,
    decimals: booking.token.decimals,
    raw_amount: booking.rawAmount.toString(),
    from_address: booking.from,
    to_address: booking.to,
    block_number: booking.blockNumber.toString(),
    block_hash: booking.blockHash,
    block_time: booking.blockTime.toISOString(),
  }
}

export async function insertBookings(
  tx: Tx,
  network: NetworkName,
  bookings: readonly { readonly id: Id<'wtx'>; readonly booking: Booking; readonly aml: BookedAml }[],
  createdAt: Date,
): Promise<void> {
  if (bookings.length === 0) return
  const given = bookings.map(({ id, booking, aml }) => ({
    id,
    aml_status: aml.status,
    on_hold: aml.isOnHold,
    aml_due_at: aml.isScreened ? '-infinity' : 'infinity',
    ...columnsOf(booking),
  }))
  await tx.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, on_hold,
      aml_due_at, created_at)
    select id, organisation_id, environment, wallet_id, ${network}, chain, tx_hash, log_index, direction, kind, 'pending',
      token, token_symbol, decimals, raw_amount::numeric, from_address, to_address, block_number::bigint, block_hash, block_time::timestamptz,
      aml_status, on_hold, aml_due_at::timestamptz, ${createdAt}
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as given (id text, organisation_id text, environment text, wallet_id text, chain text,
      tx_hash text, log_index integer, direction text, kind text, token text, token_symbol text, decimals smallint, raw_amount text,
      from_address text, to_address text, block_number text, block_hash text, block_time text,
      aml_status text, on_hold boolean, aml_due_at text)`)
}

/** Sets a row's new position on the chain. It waits for finality again; an event that was sent stays valid. */
export async function markMoved(tx: Tx, rowId: Id<'wtx'>, booking: Booking): Promise<void> {
  await tx.run(sql`
    update wallet_transactions set status = 'pending', withdrawn_at = null, undecided_at = null, log_index = ${booking.logIndex},
      block_number = ${booking.blockNumber}, block_hash = ${booking.blockHash}, block_time = ${booking.blockTime}
    where id = ${rowId}`)
}

export async function markWithdrawn(tx: Tx, rowIds: readonly Id<'wtx'>[], withdrawnAt: Date): Promise<void> {
  if (rowIds.length > 0)
    await tx.run(
      sql`update wallet_transactions set status = 'withdrawn', withdrawn_at = ${withdrawnAt} where id = any(${rowIds})`,
    )
}

/** The rows above a block that are not withdrawn. */
export function lockRowsAbove(tx: Tx, network: NetworkName, ancestor: bigint): Promise<TransactionRow[]> {
  return tx.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions where network = ${network} and block_number > ${ancestor} and status <> 'withdrawn'
    order by id for update`,
  )
}

/** Whether a row above this block was confirmed, so that its owner may have been notified of it. */
export async function hasConfirmedAbove(db: Queryable, network: NetworkName, ancestor: bigint): Promise<boolean> {
  const row = await db.one(
    z.object({ isThere: z.boolean() }),
    sql`
    select exists (
      select from wallet_transactions where network = ${network} and block_number > ${ancestor} and status <> 'withdrawn' and status = 'confirmed'
    ) as is_there`,
  )
  return row.isThere
}

/** The rows in a range of blocks whose block is not the chain's. */
export function lockRowsElsewhere(
  tx: Tx,
  network: NetworkName,
  blocks: readonly { readonly number: bigint; readonly hash: string }[],
): Promise<TransactionRow[]> {
  const numbers = blocks.map(({ number }) => number)
  const hashes = blocks.map(({ hash }) => hash)
  return tx.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions
    where network = ${network} and status <> 'withdrawn'
      and block_number between (select min(number) from unnest(${numbers}::bigint[]) as number)
        and (select max(number) from unnest(${numbers}::bigint[]) as number)
      and exists (select from unnest(${numbers}::bigint[], ${hashes}::text[]) as given (number, hash)
      where number = block_number and hash <> block_hash)
    order by id for update`,
  )
}

/** Those rows that have not changed since they were read, each in the same block; locked until the transaction ends. */
export function lockAsRead(tx: Tx, rows: readonly TransactionRow[]): Promise<TransactionRow[]> {
  const ids = rows.map((row) => row.id)
  const statuses = rows.map((row) => row.status)
  const hashes = rows.map((row) => row.blockHash)
  return tx.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions
    where (id, block_hash, status) in (select * from unnest(${ids}::text[], ${hashes}::text[], ${statuses}::text[])) order by id for update`,
  )
}

/** Marks rows as confirmed; with the id of the event if this is a deposit's first confirmation. */
export async function markConfirmed(
  tx: Tx,
  rows: readonly { readonly id: Id<'wtx'>; readonly eventId: Id<'evt'> | undefined }[],
  confirmedAt: Date,
): Promise<void> {
  const ids = rows.map((row) => row.id)
  const eventIds = rows.map((row) => row.eventId ?? null)
  await tx.run(sql`
    update wallet_transactions set status = 'confirmed', confirmed_at = coalesce(confirmed_at, ${confirmedAt}),
      event_id = coalesce(wallet_transactions.event_id, given.event_id)
    from unnest(${ids}::text[], ${eventIds}::text[]) as given (id, event_id) where wallet_transactions.id = given.id`)
}

export interface TransactionFilter extends Period {
  readonly direction?: 'in' | 'out' | undefined
  readonly network?: string | undefined
  readonly token?: string | undefined
  readonly status?: TransactionRow['status'] | undefined
  /** Only deposits that wait for the screening of their sender, or of which some is frozen. */
  readonly onHold?: 'true' | undefined
}

/** Written as in the index of deposits on hold (migration 0259). */
const isOnHold = sql`direction = 'in' and status <> 'withdrawn' and (aml_status = 'pending' and on_hold or frozen_raw_amount > 0)`

/** A wallet's transactions, newest first, one more than the limit. */
export function listTransactions(
  db: Queryable,
  tenant: Tenant,
  requested: { readonly walletId: string; readonly filter: TransactionFilter },
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<TransactionRow>> {
  const { direction, network, token, status, onHold, ...period } = requested.filter
  const columnsOf = [
    [sql`token_symbol`, token] as const,
    [sql`network`, network] as const,
    [sql`direction`, direction] as const,
    [sql`status`, status] as const,
  ]
  const { where, order } = filtered(columnsOf, sql`id`, boundsOf('wtx', period, page.after))
  return listRows(
    db,
    TransactionRow,
    page.limit,
    sql`
    select ${columns} from wallet_transactions
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = ${requested.walletId}
      and ${where} and ${within(sql`created_at`, period)} and ${onHold === undefined ? sql`true` : isOnHold}
    order by ${order}`,
  )
}

/** The first of the tenant's rows of one transaction that are not withdrawn, in the order of their logs. */
export function listTransactionsOf(
  db: Queryable,
  tenant: Tenant,
  { network, txHash, limit }: { readonly network: NetworkName; readonly txHash: string; readonly limit: number },
): Promise<TransactionRow[]> {
  return db.many(
    TransactionRow,
    sql`
    select ${columns} from wallet_transactions
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and network = ${network}
      and tx_hash = ${txHash} and status <> 'withdrawn' order by log_index, direction, id limit ${limit}`,
  )
}

/** Records those of these confirmed deposits, at managed wallets, whose organisation was deleted; the metrics show them to the operator. */
export async function recordLateDeposits(tx: Tx, ids: readonly Id<'wtx'>[]): Promise<void> {
  if (ids.length === 0) return
  await tx.run(sql`
    insert into late_deposits (organisation_id, transaction_id, tokens)
    select deposit.organisation_id, deposit.id, deposit.raw_amount / power(10::numeric, deposit.decimals) from wallet_transactions as deposit join organisations on organisations.id = deposit.organisation_id
    where deposit.id = any(${ids}::text[]) and deposit.wallet_id not like 'byw\\_%' and organisations.deleted_at is not null
    on conflict do nothing`)
}
