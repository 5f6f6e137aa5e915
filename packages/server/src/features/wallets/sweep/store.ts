import type { Address } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { isBelow, type ListedRows, listRows } from '../../../platform/db/page.ts'
import { type ChildAddressId, id, type MasterWalletId, type SweepId } from '../../../platform/ids.ts'
import { ChainName } from '../../chains/index.ts'
import { shareOwnerSql } from '../../plans/index.ts'

const Index = z.bigint().transform(Number)

export const SweepRow = z.object({
  id: id('swp'),
  masterWalletId: id('mwt'),
  chain: ChainName,
  network: z.string(),
  token: z.string(),
  decimals: z.number(),
  trigger: z.enum(['request', 'automatic']),
  isPartial: z.boolean(),
  status: z.enum(['sweeping', 'completed']),
  createdAt: z.date(),
  completedAt: z.date().nullable(),
})
export type SweepRow = z.output<typeof SweepRow>

export const SweepSummaryRow = SweepRow.extend({
  childCount: Index,
  rawAmount: StoredBigInt,
  sweptRawAmount: StoredBigInt,
})
export type SweepSummaryRow = z.output<typeof SweepSummaryRow>

export const SweepChildRow = z.object({
  childAddressId: id('cad'),
  fromAddress: StoredHex,
  rawAmount: StoredBigInt,
  status: z.enum(['planned', 'signed', 'sent', 'swept', 'failed']),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
})
export type SweepChildRow = z.output<typeof SweepChildRow>

const summaryColumns = sql`sweeps.id, master_wallet_id, chain, sweeps.network, token, decimals, trigger, is_partial, sweeps.status, sweeps.created_at, completed_at,
  count(t.sweep_id) as child_count, coalesce(sum(raw_amount), 0)::text as raw_amount,
  coalesce(sum(raw_amount) filter (where t.status = 'swept'), 0)::text as swept_raw_amount`

/** A child that may have a balance to sweep. */
export const CandidateRow = z.object({ id: id('cad'), childIndex: Index, address: StoredHex })
export type CandidateRow = z.output<typeof CandidateRow>

/** Those named children that the wallet has. */
export function listNamedChildren(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  childIds: readonly ChildAddressId[],
): Promise<CandidateRow[]> {
  return db.many(
    CandidateRow,
    sql`
    select id, child_index, address from child_addresses
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId}
      and id = any(${childIds}::text[])
    order by child_index`,
  )
}

/** Children of the wallet after an index, by index. */
export function listChildrenBehind(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  page: { readonly behind: number; readonly limit: number },
): Promise<CandidateRow[]> {
  return db.many(
    CandidateRow,
    sql`
    select id, child_index, address from child_addresses
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId}
      and child_index > ${page.behind}
    order by child_index limit ${page.limit}`,
  )
}

/** The index after which the next sweep of the wallet's children continues; 0 for the beginning. */
export async function findScannedTo(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  token: string,
): Promise<number> {
  const row = await db.maybeOne(
    z.object({ scannedTo: Index }),
    sql`
    select scanned_to from sweep_scans
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId} and token = ${token}`,
  )
  return row?.scannedTo ?? 0
}

export async function markScannedTo(
  db: Queryable,
  tenant: Tenant,
  scan: { readonly walletId: MasterWalletId; readonly token: string; readonly scannedTo: number },
): Promise<void> {
  await db.run(sql`
    insert into sweep_scans (organisation_id, environment, master_wallet_id, token, scanned_to)
    values (${tenant.organisationId}, ${tenant.environment}, ${scan.walletId}, ${scan.token}, ${scan.scannedTo})
    on conflict (master_wallet_id, token) do update set scanned_to = excluded.scanned_to`)
}

/** Sweeps that are stored at the same time. */
const storedAtOnce = 4

/**
 * Limits how many sweeps are stored at once under the locks of their children: each locks up to a thousand, and PostgreSQL has memory for some
 * thousands of locks in all. Sweeps of one account take turns, so that one that waits for the account's other locks delays few others.
 */
export async function lockStoring(tx: Tx, { organisationId }: Tenant): Promise<void> {
  await tx.run(sql`
    select pg_advisory_xact_lock(hashtextextended('wallets.sweeps:' || (hashtext(${shareOwnerSql(sql`${organisationId}`)}) & ${storedAtOnce - 1}::integer)::text, 0))`)
}

/** Inserts a sweep; false if its wallet is retired. Waits for a concurrent retirement. */
export async function insertSweep(tx: Tx, tenant: Tenant, sweep: SweepRow): Promise<boolean> {
  const inserted = await tx.run(sql`
    insert into sweeps (id, organisation_id, environment, master_wallet_id, chain, network, token, decimals, trigger, is_partial, status, created_at, completed_at)
    select ${sweep.id}, organisation_id, environment, id, ${sweep.chain}, ${sweep.network}, ${sweep.token}, ${sweep.decimals},
      ${sweep.trigger}, ${sweep.isPartial}, ${sweep.status}, ${sweep.createdAt}, ${sweep.completedAt} from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${sweep.masterWalletId}
      and retired_at is null
    for key share`)
  return inserted === 1
}

/** A child's part of a sweep, before signing. */
export interface NewSweepTransfer {
  readonly childAddressId: ChildAddressId
  readonly from: Address
  readonly rawAmount: bigint
  /** Frozen amount in addition to it. */
  readonly frozenRawAmount: bigint
  /** 32 bytes. */
  readonly nonce: Uint8Array
}

/** Terms that the transfers of one sweep share. */
export interface TransferTerms {
  readonly sweepId: SweepId
  readonly network: string
  readonly asset: string
  readonly to: string
  readonly validBefore: Date
  readonly createdAt: Date
  /** Share of each in the day's gas budget, in billionths of a US dollar. */
  readonly gasReservedNanoUsd: bigint
}

/**
 * Inserts those transfers whose child has none of that token in progress, in one statement; returns their children. Rows are inserted by
 * address, so that two requests for the same children wait for each other and never deadlock.
 */
export async function insertTransfers(
  tx: Tx,
  tenant: Tenant,
  terms: TransferTerms,
  transfers: readonly NewSweepTransfer[],
): Promise<ReadonlySet<string>> {
  const rows = await tx.many(
    z.object({ childAddressId: id('cad') }),
    sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, share_owner, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, status, created_at, gas_reserved_nano_usd)
    select ${terms.sweepId}, child_address_id, ${tenant.organisationId}, ${shareOwnerSql(sql`${tenant.organisationId}`)}, ${tenant.environment}, ${terms.network}, ${terms.asset}, from_address,
      ${terms.to}, raw_amount, frozen, nonce, ${terms.validBefore}, 'planned', ${terms.createdAt}, ${terms.gasReservedNanoUsd.toString()}::numeric
    from unnest(${transfers.map((transfer) => transfer.childAddressId)}::text[], ${transfers.map((transfer) => transfer.from)}::text[],
      ${transfers.map((transfer) => transfer.rawAmount.toString())}::numeric[], ${transfers.map((transfer) => transfer.frozenRawAmount.toString())}::numeric[], ${transfers.map((transfer) => Buffer.from(transfer.nonce))}::bytea[])
      as given (child_address_id, from_address, raw_amount, frozen, nonce)
    order by from_address
    on conflict (network, asset, from_address) where status in ('planned', 'signed', 'sent') do nothing
    returning child_address_id`,
  )
  return new Set(rows.map((row) => row.childAddressId))
}

export function findSweep(
  db: Queryable,
  tenant: Tenant,
  requested: { readonly id: MasterWalletId; readonly sweepId: SweepId },
): Promise<SweepSummaryRow | undefined> {
  return db.maybeOne(
    SweepSummaryRow,
    sql`
    select ${summaryColumns} from sweeps left join sweep_transfers t on t.sweep_id = sweeps.id
    where sweeps.organisation_id = ${tenant.organisationId} and sweeps.environment = ${tenant.environment}
      and master_wallet_id = ${requested.id} and sweeps.id = ${requested.sweepId}
    group by sweeps.id`,
  )
}

/** The wallet of a sweep, by the sweep's id. */
export async function findSweptWallet(
  db: Queryable,
  tenant: Tenant,
  sweepId: SweepId,
): Promise<MasterWalletId | undefined> {
  const row = await db.maybeOne(
    z.object({ masterWalletId: id('mwt') }),
    sql`
    select master_wallet_id from sweeps
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${sweepId}`,
  )
  return row?.masterWalletId
}

/** Sweeps of a wallet, newest first, one more than the limit. */
export function listSweeps(
  db: Queryable,
  tenant: Tenant,
  walletId: MasterWalletId,
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<SweepSummaryRow>> {
  return listRows(
    db,
    SweepSummaryRow,
    page.limit,
    sql`
    select ${summaryColumns} from sweeps left join sweep_transfers t on t.sweep_id = sweeps.id
    where sweeps.organisation_id = ${tenant.organisationId} and sweeps.environment = ${tenant.environment} and master_wallet_id = ${walletId}
      and ${isBelow(sql`sweeps.id`, page.after)}
    group by sweeps.id order by sweeps.id desc`,
  )
}

export function listSweepChildren(db: Queryable, tenant: Tenant, sweepId: SweepId): Promise<SweepChildRow[]> {
  return db.many(
    SweepChildRow,
    sql`
    select child_address_id, from_address, raw_amount, t.status, tx_hash, failure_reason
    from sweep_transfers t join child_addresses c on c.id = child_address_id
    where t.organisation_id = ${tenant.organisationId} and t.environment = ${tenant.environment} and sweep_id = ${sweepId}
    order by child_index`,
  )
}

/**
 * Completes those sweeps without a transfer in progress. Callers that end transfers lock their sweeps first (`lockSweeps`), so that the
 * last of them detects that it is the last.
 */
export async function markCompleted(tx: Tx, sweepIds: readonly SweepId[], now: Date): Promise<void> {
  await tx.run(sql`
    update sweeps set status = 'completed', completed_at = ${now}
    where id = any(${sweepIds}::text[]) and status = 'sweeping' and not exists (
      select from sweep_transfers t where t.sweep_id = sweeps.id and t.status in ('planned', 'signed', 'sent'))`)
}
