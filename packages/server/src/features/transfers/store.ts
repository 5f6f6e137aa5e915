import { hexToBytes } from '@purser/protocol'
import { z } from 'zod'
import type { ChainTransactionId } from '../../chain/port.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import {
  boundsOf,
  filtered,
  type ListedRows,
  listRows,
  type Period,
  within,
  withMetadata,
} from '../../platform/db/page.ts'
import { type Id, id } from '../../platform/ids.ts'
import type { MetadataMember } from '../../platform/wire.ts'
import { ChainName } from '../chains/index.ts'
import { RouteName } from './schema.ts'

export type TransferId = Id<'wtx'>

/** Name of transfer transactions in the lanes. */
export const transferPurpose = 'transfers.step'

export const TransferRow = z.object({
  id: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.union([id('mwt'), id('cad')]),
  fromAddress: StoredHex,
  toAddress: StoredHex,
  fromChain: ChainName,
  fromNetwork: z.string(),
  toChain: ChainName,
  toNetwork: z.string(),
  fromToken: z.string(),
  toToken: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  route: RouteName,
  routeReason: z.string(),
  status: z.enum(['pending', 'confirmed', 'failed']),
  reason: z.string().nullable(),
  txHash: StoredHex.nullable(),
  rawFee: StoredBigInt,
  /** The state that the response reported to its caller; null without a response. */
  reportedState: z.enum(['pending', 'confirmed', 'reverted']).nullable(),
  eventId: id('evt').nullable(),
  createdAt: z.date(),
  /** The time of the request, or of the decision's application if it needed an approval. */
  acceptedAt: z.date(),
  confirmedAt: z.date().nullable(),
  endedAt: z.date().nullable(),
  partner: z.string().nullable(),
  partnerReference: z.string().nullable(),
  quoteExpiresAt: z.date().nullable(),
  toDecimals: z.number().nullable(),
  rawOut: StoredBigInt.nullable(),
  rawOutMin: StoredBigInt.nullable(),
  rawReceived: StoredBigInt.nullable(),
  receivedToken: StoredHex.nullable(),
  leftAt: z.date().nullable(),
  nextPollAt: z.date().nullable(),
  refundTxHash: StoredHex.nullable(),
  destinationTxHash: StoredHex.nullable(),
  refundedAt: z.date().nullable(),
  refundOverdueEventId: id('evt').nullable(),
  reference: z.string().nullable(),
  resource: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  /** The approval that its wallet's policy requires. */
  approvalId: id('apr').nullable(),
})
export type TransferRow = z.output<typeof TransferRow>

export const StepRow = z.object({
  transferId: id('wtx'),
  position: z.number(),
  kind: z.enum(['top-up', 'send', 'approve', 'partner', 'claim', 'refill', 'revoke']),
  sender: StoredHex,
  toAddress: StoredHex,
  data: z.instanceof(Uint8Array),
  value: StoredBigInt,
  gasLimit: StoredBigInt,
  transactionId: id('ctx').nullable(),
})
export type StepRow = z.output<typeof StepRow>

export const columns = sql`id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
  from_token, to_token, decimals, raw_amount, route, route_reason, status, reason, tx_hash, raw_fee, answered as reported_state, event_id, created_at,
  confirmed_at, ended_at, partner, partner_reference, quote_expires_at, to_decimals, raw_out, raw_out_min, raw_received, received_token, left_at,
  look_at as next_poll_at, refund_tx_hash, destination_tx_hash, refunded_at, refund_overdue_event_id, reference, resource, metadata, approval_id,
  coalesce(released_at, created_at) as accepted_at`
const stepColumns = sql`transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id`

/**
 * Whether a transfer has not ended, for a statement that has its id. No index serves it: PostgreSQL would otherwise read all transfers that it
 * takes for the few that are under way.
 */
export const isOpen = sql`coalesce(ended_at, 'infinity') = 'infinity'`

type NewTransferRow = Omit<
  TransferRow,
  | 'organisationId'
  | 'environment'
  | 'status'
  | 'reason'
  | 'txHash'
  | 'rawFee'
  | 'reportedState'
  | 'eventId'
  | 'acceptedAt'
  | 'confirmedAt'
  | 'endedAt'
  | 'rawReceived'
  | 'receivedToken'
  | 'leftAt'
  | 'nextPollAt'
  | 'refundTxHash'
  | 'destinationTxHash'
  | 'refundedAt'
  | 'refundOverdueEventId'
>

/** Owner of a transfer: a caller; a withdrawal, which reports its outcome itself; or a 402 that the transfer pays. */
export const transferPurposes = ['transfer', 'withdrawal', 'payment'] as const
export type TransferPurpose = (typeof transferPurposes)[number]

export type StoredTransfer = NewTransferRow & {
  readonly purpose: TransferPurpose
  readonly reportedState: TransferRow['reportedState']
}

export async function insertTransfers(tx: Tx, tenant: Tenant, rows: readonly StoredTransfer[]): Promise<void> {
  const texts = rows.map(({ rawAmount, rawOut, rawOutMin, ...row }) => ({
    ...row,
    rawAmount: rawAmount.toString(),
    rawOut: rawOut?.toString() ?? null,
    rawOutMin: rawOutMin?.toString() ?? null,
  }))
  await tx.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, purpose, answered, created_at,
      partner, partner_reference, quote_expires_at, to_decimals, raw_out, raw_out_min, reference, resource, metadata, approval_id)
    select id, ${tenant.organisationId}, ${tenant.environment}, "walletId", "fromAddress", "toAddress", "fromChain", "fromNetwork", "toChain",
      "toNetwork", "fromToken", "toToken", decimals, "rawAmount", route, "routeReason", 'pending', purpose, "reportedState", "createdAt",
      partner, "partnerReference", "quoteExpiresAt", "toDecimals", "rawOut", "rawOutMin", reference, resource, metadata, "approvalId"
    from jsonb_to_recordset(${JSON.stringify(texts)}::jsonb) as given (id text, "walletId" text, "fromAddress" text, "toAddress" text,
      "fromChain" text, "fromNetwork" text, "toChain" text, "toNetwork" text, "fromToken" text, "toToken" text, decimals smallint,
      "rawAmount" numeric, route text, "routeReason" text, purpose text, "reportedState" text, "createdAt" timestamptz, partner text,
      "partnerReference" text, "quoteExpiresAt" timestamptz, "toDecimals" smallint, "rawOut" numeric, "rawOutMin" numeric, reference text,
      resource text, metadata jsonb, "approvalId" text)`)
}

export type NewStep = Omit<StepRow, 'transactionId' | 'data'> & {
  readonly data: `0x${string}`
  readonly transactionId: ChainTransactionId | null
}

export async function insertSteps(tx: Tx, steps: readonly NewStep[]): Promise<void> {
  await tx.run(sql`
    insert into transfer_steps (transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id)
    select * from unnest(
      ${steps.map(({ transferId }) => transferId)}::text[], ${steps.map(({ position }) => position)}::integer[],
      ${steps.map(({ kind }) => kind)}::text[], ${steps.map(({ sender }) => sender)}::text[],
      ${steps.map(({ toAddress }) => toAddress)}::text[], ${steps.map(({ data }) => hexToBytes(data))}::bytea[],
      ${steps.map(({ value }) => value)}::numeric[], ${steps.map(({ gasLimit }) => gasLimit)}::numeric[],
      ${steps.map(({ transactionId }) => transactionId)}::text[])`)
}

/** Records when the approval of a transfer was applied. Its column is named as in migration 0295. */
export async function markAccepted(tx: Tx, tenant: Tenant, transferId: TransferId, now: Date): Promise<void> {
  await tx.run(sql`
    update transfers set released_at = ${now}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${transferId}`)
}

/** Deletes the steps of a transfer that has no transaction yet. */
export async function deleteSteps(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`
    delete from transfer_steps where transfer_id = ${transferId}
      and not exists (select from transfer_steps s where s.transfer_id = ${transferId} and s.transaction_id is not null)`)
}

/** Assigns a step the transaction that executes it. Returns false, and changes nothing, if it already has one. */
export async function assignStep(
  tx: Tx,
  { transferId, position }: Pick<StepRow, 'transferId' | 'position'>,
  transactionId: ChainTransactionId,
): Promise<boolean> {
  const changed = await tx.run(sql`
    update transfer_steps set transaction_id = ${transactionId}
    where transfer_id = ${transferId} and position = ${position} and transaction_id is null`)
  return changed === 1
}

const StepOfTransfer = TransferRow.extend({ ...StepRow.omit({ toAddress: true }).shape, stepTo: StoredHex })

interface OwnStep {
  readonly step: StepRow
  readonly transfer: TransferRow
}

/** The steps that these transactions execute, with their transfers. Locks the transfers in a fixed order, so that none deadlock. */
export function lockStepsOf(tx: Tx, transactionIds: readonly ChainTransactionId[]): Promise<OwnStep[]> {
  return readStepsOf(tx, transactionIds, sql`for update of transfers`)
}

/** As `lockStepsOf`, without a lock. */
export function listStepsOf(db: Queryable, transactionIds: readonly ChainTransactionId[]): Promise<OwnStep[]> {
  return readStepsOf(db, transactionIds, sql``)
}

async function readStepsOf(
  db: Queryable,
  transactionIds: readonly ChainTransactionId[],
  lock: Sql,
): Promise<OwnStep[]> {
  const rows = await db.many(
    StepOfTransfer,
    sql`
    select ${columns}, transfer_id, position, kind, sender, step_to, data, value, gas_limit, transaction_id
    from (
      select transfer_id, position, kind, sender, to_address as step_to, data, value, gas_limit, transaction_id
      from transfer_steps where transaction_id = any(${anyLength(transactionIds)})
    ) as s join transfers on id = transfer_id order by id ${lock}`,
  )
  return rows.map(
    ({ transferId, position, kind, sender, stepTo, data, value, gasLimit, transactionId, ...transfer }) => {
      const called = { sender, toAddress: stepTo, data, value, gasLimit }
      return { step: { transferId, position, kind, ...called, transactionId }, transfer }
    },
  )
}

/** The first step of a transfer that has no transaction yet. */
export function findNextStep(tx: Tx, transferId: TransferId): Promise<StepRow | undefined> {
  return tx.maybeOne(
    StepRow,
    sql`
    select ${stepColumns} from transfer_steps where transfer_id = ${transferId} and transaction_id is null order by position limit 1`,
  )
}

/** The steps of a transfer in their order, with the time at which each was done. */
export function listSteps(db: Queryable, transferId: TransferId): Promise<(StepRow & { doneAt: Date | null })[]> {
  return db.many(
    StepRow.extend({ doneAt: z.date().nullable() }),
    sql`select ${stepColumns}, done_at from transfer_steps where transfer_id = ${transferId} order by position`,
  )
}

export function findTransfer(db: Queryable, tenant: Tenant, transferId: TransferId): Promise<TransferRow | undefined> {
  return db.maybeOne(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${transferId}`,
  )
}

/** Those of the transfers that the tenant has, in no particular order. */
export function findTransfers(
  db: Queryable,
  tenant: Tenant,
  transferIds: readonly TransferId[],
): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${anyLength(transferIds)})`,
  )
}

const SourceRow = z.object({ id: z.string(), source: z.string() })

/** The network and the partner that the plan of each transfer reads, by its id. */
export async function listSources(db: Queryable, transferIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rows = await db.many(
    SourceRow,
    sql`select id, concat_ws(' ', from_network, partner) as source from transfers where id = any(${transferIds}::text[])`,
  )
  return new Map(rows.map(({ id, source }) => [id, source]))
}

/** As `findTransfer`, without the transfers of withdrawals. */
export function findOwnTransfer(
  db: Queryable,
  tenant: Tenant,
  transferId: TransferId,
): Promise<TransferRow | undefined> {
  return db.maybeOne(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${transferId} and purpose <> 'withdrawal'`,
  )
}

/** The hashes of those transfers that are signed. */
export async function findHashes(
  db: Queryable,
  tenant: Tenant,
  transferIds: readonly TransferId[],
): Promise<ReadonlyMap<TransferId, string>> {
  const rows = await db.many(
    z.object({ id: id('wtx'), txHash: StoredHex }),
    sql`
    select id, tx_hash from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${anyLength(transferIds)})
      and tx_hash is not null`,
  )
  return new Map(rows.map((row) => [row.id, row.txHash]))
}

/** Locks the row, so that block updates and responses are serialized. */
export function lockTransfer(tx: Tx, transferId: TransferId): Promise<TransferRow> {
  return tx.one(TransferRow, sql`select ${columns} from transfers where id = ${transferId} for update`)
}

/** Locks several transfers in a fixed order, so that none deadlock. */
export function lockTransfers(tx: Tx, transferIds: readonly TransferId[]): Promise<TransferRow[]> {
  return tx.many(
    TransferRow,
    sql`select ${columns} from transfers where id = any(${transferIds}::text[]) order by id for update`,
  )
}

/** Sets the amount of a payment that is signed for less than was approved. */
export async function setAmount(tx: Tx, transferId: TransferId, rawAmount: bigint): Promise<void> {
  await tx.run(
    sql`update transfers set raw_amount = ${rawAmount.toString()} where id = ${transferId} and ended_at is null`,
  )
}

export interface TransferFilters extends Period {
  readonly walletId?: string | undefined
  readonly status?: TransferRow['status'] | undefined
  readonly metadata?: MetadataMember | undefined
}

/** Newest first, one more than the limit. */
export function listTransfers(
  db: Queryable,
  tenant: Tenant,
  filters: TransferFilters,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<TransferRow>> {
  const marked = withMetadata(sql`transfers`, tenant, filters.metadata)
  const columnsOf = [
    ...marked.filters,
    [sql`wallet_id`, filters.walletId] as const,
    [sql`status`, filters.status] as const,
  ]
  const { where, order } = filtered(columnsOf, marked.id, boundsOf('wtx', filters, page.after))
  return listRows(
    db,
    TransferRow,
    page.limit,
    sql`
    select ${columns} from ${marked.from}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and purpose <> 'withdrawal'
      and ${where} and ${within(sql`created_at`, filters)} order by ${order}`,
  )
}

/** Those transfers that have something to report: a block decided them, a bridge has begun, or they need an approval. */
export async function listDecided(db: Queryable, transferIds: readonly TransferId[]): Promise<TransferId[]> {
  const rows = await db.many(
    z.object({ id: id('wtx') }),
    sql`
    select id from transfers where id = any(${anyLength(transferIds)})
      and (status <> 'pending' or reason is not null or approval_id is not null or (route = 'partner-bridge' and left_at is not null))`,
  )
  return rows.map((row) => row.id)
}

/** Whether a step after this one has its transaction. */
export async function hasLaterStep(tx: Tx, { transferId, position }: StepRow): Promise<boolean> {
  const row = await tx.one(
    z.object({ has: z.boolean() }),
    sql`
    select exists (select 1 from transfer_steps
      where transfer_id = ${transferId} and position > ${position} and transaction_id is not null and kind not in ('claim', 'refill', 'revoke')) as has`,
  )
  return row.has
}
