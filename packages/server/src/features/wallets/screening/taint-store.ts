import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { bookedUpTo } from '../deposits/rollup-store.ts'

/** A token of a managed wallet on a network; the token as stored. */
export interface WalletToken {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: string
  readonly token: string
}

/** An asset, and the lowest block with a change there. */
export interface Change {
  readonly asset: WalletToken
  readonly block: bigint
}

export const ChangeRow = z.object({
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  network: z.string(),
  token: z.string(),
  block: z.bigint(),
})

export function changeOf({ walletId, network, token, block, ...tenant }: z.output<typeof ChangeRow>): Change {
  return { asset: { tenant, walletId, network, token }, block }
}

/** Condition on a table with an asset's columns: the rows of this asset. */
const isAt = ({ tenant, walletId, network, token }: WalletToken): Sql => sql`organisation_id = ${tenant.organisationId}
  and environment = ${tenant.environment} and wallet_id = ${walletId} and network = ${network} and token = ${token}`

/** Condition on `wallet_transactions`: the rows of the index `wallet_transactions_tainted`. */
const isTainted: Sql = sql`direction = 'in' and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0)`

/** Expression on `wallet_transactions`: the flagged or tainted amount of a row. */
const rawTaint: Sql = sql`case when direction = 'out' or status = 'withdrawn' then 0 when aml_status = 'flagged' then raw_amount
  else tainted_raw_amount end`

/** The changes, each asset once, at assets with flagged or tainted money. */
export async function listTaintedChanges(tx: Tx, changes: readonly Change[]): Promise<Change[]> {
  if (changes.length === 0) return []
  const each = <T>(read: (change: Change) => T): T[] => changes.map(read)
  const rows = await tx.many(
    ChangeRow,
    sql`
    select organisation_id, environment, wallet_id, network, token, min(block) as block
    from unnest(${each(({ asset }) => asset.tenant.organisationId)}::text[], ${each(({ asset }) => asset.tenant.environment)}::text[],
      ${each(({ asset }) => asset.walletId)}::text[], ${each(({ asset }) => asset.network)}::text[], ${each(({ asset }) => asset.token)}::text[],
      ${each(({ block }) => block)}::bigint[]) as asset (organisation_id, environment, wallet_id, network, token, block)
    where exists (select from tainted_places t where t.organisation_id = asset.organisation_id and t.environment = asset.environment
        and t.wallet_id = asset.wallet_id and t.network = asset.network and t.token = asset.token)
      or exists (select from wallet_transactions w where w.organisation_id = asset.organisation_id and w.environment = asset.environment
        and w.wallet_id = asset.wallet_id and w.network = asset.network and w.token = asset.token and ${isTainted})
    group by organisation_id, environment, wallet_id, network, token`,
  )
  return rows.map(changeOf)
}

const Checkpoint = z.object({
  block: z.bigint(),
  rawBalance: StoredBigInt,
  rawTainted: StoredBigInt,
  rawLeft: StoredBigInt,
})
/** The balance of an asset after a block, its tainted amount, and the tainted amount that has left by then. */
export type Checkpoint = z.output<typeof Checkpoint>

/**
 * Deletes checkpoints of the asset from a block on, and those before it that a release without `raw_left` made last; returns the newest remaining
 * one.
 */
export async function resetCheckpoints(tx: Tx, asset: WalletToken, block: bigint): Promise<Checkpoint | undefined> {
  const known = await tx.maybeOne(
    Checkpoint,
    sql`
    select block_number as block, raw_balance::text, raw_tainted::text, raw_left::text from taint_checkpoints
    where ${isAt(asset)} and block_number < ${block} and raw_left is not null order by block_number desc limit 1`,
  )
  const isReset = known === undefined ? sql`true` : sql`block_number > ${known.block}`
  await tx.run(sql`delete from taint_checkpoints where ${isAt(asset)} and ${isReset}`)
  return known
}

/** The balance of the asset before the given block or its first tainted one, whichever is lower. */
export function sumBefore(tx: Tx, asset: WalletToken, block: bigint): Promise<Checkpoint> {
  const { walletId, network, token } = asset
  const booked = bookedUpTo({
    walletId: sql`${walletId}`,
    network: sql`${network}`,
    token: sql`${token}`,
    block: sql`first.block`,
  })
  return tx.one(
    Checkpoint,
    sql`
    with first as materialized (
      select least(${block}::bigint, min(block_number)) - 1 as block from wallet_transactions
      where ${isAt(asset)} and ${isTainted} and status <> 'withdrawn' and (aml_status = 'flagged' or tainted_raw_amount > 0)
    )
    select first.block, greatest(${booked}, 0)::text as raw_balance, '0' as raw_tainted, '0' as raw_left from first`,
  )
}

export async function insertCheckpoint(tx: Tx, asset: WalletToken, checkpoint: Checkpoint): Promise<void> {
  const { tenant, walletId, network, token } = asset
  await tx.run(sql`
    insert into taint_checkpoints (organisation_id, environment, wallet_id, network, token, block_number, raw_balance, raw_tainted, raw_left)
    values (${tenant.organisationId}, ${tenant.environment}, ${walletId}, ${network}, ${token}, ${checkpoint.block},
      ${checkpoint.rawBalance.toString()}, ${checkpoint.rawTainted.toString()}, ${checkpoint.rawLeft.toString()})`)
}

const LedgerRow = z.object({
  direction: z.enum(['in', 'out']),
  rawAmount: StoredBigInt,
  /** The flagged or tainted amount of an incoming row. */
  rawTaint: StoredBigInt,
  txHash: z.string(),
  logIndex: z.number(),
  block: z.bigint(),
})
export type LedgerRow = z.output<typeof LedgerRow>

/** The first movements to and from an asset above a block, in chain order. */
export function listLedger(tx: Tx, asset: WalletToken, above: bigint, most: number): Promise<LedgerRow[]> {
  return tx.many(
    LedgerRow,
    sql`
    select direction, raw_amount::text, (${rawTaint})::text as raw_taint, tx_hash, log_index, block_number as block
    from wallet_transactions where ${isAt(asset)} and status <> 'withdrawn' and block_number > ${above}
    order by block_number, log_index, direction limit ${most}`,
  )
}

/** The tainted amount of an outgoing row. */
export interface MovedTaint {
  readonly txHash: string
  readonly logIndex: number
  readonly rawTaint: bigint
}

/** Stores the tainted amounts of these transfers at the organisation's wallets that received them; returns where that changed something. */
export async function updateTaintedReceivers(
  tx: Tx,
  { tenant, network, token }: WalletToken,
  moved: readonly MovedTaint[],
): Promise<Change[]> {
  if (moved.length === 0) return []
  const rows = await tx.many(
    ChangeRow,
    sql`
    update wallet_transactions w set tainted_raw_amount = least(given.raw, w.raw_amount)
    from unnest(${moved.map(({ txHash }) => txHash)}::text[], ${moved.map(({ logIndex }) => logIndex)}::integer[],
      ${moved.map((one) => one.rawTaint.toString())}::numeric[]) as given (tx_hash, log_index, raw)
    where w.network = ${network} and w.tx_hash = given.tx_hash and w.log_index = given.log_index and w.token = ${token} and w.direction = 'in'
      and w.organisation_id = ${tenant.organisationId} and w.environment = ${tenant.environment} and w.wallet_id not like 'byw\\_%'
      and w.status <> 'withdrawn' and w.tainted_raw_amount <> least(given.raw, w.raw_amount)
    returning w.organisation_id, w.environment, w.wallet_id, w.network, w.token, w.block_number as block`,
  )
  return rows.map(changeOf)
}

const TaintedRow = z.object({
  id: z.string(),
  block: z.bigint(),
  logIndex: z.number(),
  rawTaint: StoredBigInt,
  rawFrozen: StoredBigInt,
})
export type TaintedRow = z.output<typeof TaintedRow>
/** A row's asset in the order of the chain. */
export type RowOrder = Pick<TaintedRow, 'id' | 'block' | 'logIndex'>

const rowColumns = sql`id, block_number as block, log_index, (${rawTaint})::text as raw_taint, frozen_raw_amount::text as raw_frozen`

/** The newest tainted or frozen incoming rows of an asset below a block, or below a row. */
export function listTaintedBelow(
  tx: Tx,
  asset: WalletToken,
  below: bigint | RowOrder,
  most: number,
): Promise<TaintedRow[]> {
  const isBelow =
    typeof below === 'bigint'
      ? sql`block_number < ${below}`
      : sql`(block_number, log_index, id) < (${below.block}::bigint, ${below.logIndex}::integer, ${below.id}::text)`
  return tx.many(
    TaintedRow,
    sql`
    select ${rowColumns} from wallet_transactions where ${isAt(asset)} and ${isTainted} and ${isBelow}
    order by block_number desc, log_index desc, id desc limit ${most}`,
  )
}

/** The oldest tainted or frozen incoming rows of an asset from a block on. */
export function listTaintedFrom(tx: Tx, asset: WalletToken, from: bigint, most: number): Promise<TaintedRow[]> {
  return tx.many(
    TaintedRow,
    sql`
    select ${rowColumns} from wallet_transactions where ${isAt(asset)} and ${isTainted} and block_number >= ${from}
    order by block_number, log_index, id limit ${most}`,
  )
}

/**
 * The tainted amount that an asset received before a block, or up to and with a row. Reads the rows since the last checkpoint: the asset is traced, so
 * its checkpoints are not older than a page.
 */
export async function sumTaint(tx: Tx, asset: WalletToken, end: bigint | RowOrder): Promise<bigint> {
  const before = typeof end === 'bigint' ? end : end.block
  const isIn =
    typeof end === 'bigint'
      ? sql`block_number < ${end}`
      : sql`(block_number, log_index, id) <= (${end.block}::bigint, ${end.logIndex}::integer, ${end.id}::text)`
  const { raw } = await tx.one(
    z.object({ raw: StoredBigInt }),
    sql`
    with known as materialized (
      select block_number, raw_tainted + raw_left as raw from taint_checkpoints
      where ${isAt(asset)} and block_number < ${before} and raw_left is not null order by block_number desc limit 1
    )
    select (coalesce((select raw from known), 0) + coalesce(sum(${rawTaint}), 0))::text as raw from wallet_transactions
    where ${isAt(asset)} and ${isTainted} and block_number > coalesce((select block_number from known), -1) and ${isIn}`,
  )
  return raw
}

/** The oldest frozen rows of an asset below a block, read from the index `wallet_transactions_frozen_in_order`. */
export function listOldestFrozen(tx: Tx, asset: WalletToken, below: bigint, most: number): Promise<TaintedRow[]> {
  return tx.many(
    TaintedRow,
    sql`
    select ${rowColumns} from wallet_transactions
    where ${isAt(asset)} and direction = 'in' and frozen_raw_amount > 0 and block_number < ${below}
    order by block_number, log_index, id limit ${most}`,
  )
}

/** Stores the frozen amounts of these rows. */
export async function updateFrozen(
  tx: Tx,
  { tenant }: WalletToken,
  frozen: ReadonlyMap<string, bigint>,
): Promise<void> {
  if (frozen.size === 0) return
  await tx.run(sql`
    update wallet_transactions w set frozen_raw_amount = given.raw
    from unnest(${[...frozen.keys()]}::text[], ${[...frozen.values()].map(String)}::numeric[]) as given (id, raw)
    where w.id = given.id and w.organisation_id = ${tenant.organisationId} and w.environment = ${tenant.environment}`)
}

/**
 * Stores the total frozen amount of the asset, and the tainted amount that left it; an update without a new `left_revision` makes that unknown. A
 * asset without flagged or tainted money, spent or not, is deleted.
 */
export async function upsertTaintedAsset(
  tx: Tx,
  asset: WalletToken,
  { rawFrozen, rawLeft }: { readonly rawFrozen: bigint; readonly rawLeft: bigint },
): Promise<void> {
  const { tenant, walletId, network, token } = asset
  await tx.run(sql`
    insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen, raw_left)
    values (${tenant.organisationId}, ${tenant.environment}, ${walletId}, ${network}, ${token}, ${rawFrozen.toString()}, ${rawLeft.toString()})
    on conflict (wallet_id, network, token) do update set raw_frozen = excluded.raw_frozen, raw_left = excluded.raw_left,
      left_revision = tainted_places.left_revision + 1`)
  if (rawFrozen > 0n) return
  const isClean = sql`not exists (select from wallet_transactions where ${isAt(asset)} and ${isTainted})`
  await tx.run(sql`delete from taint_checkpoints where ${isAt(asset)} and ${isClean}`)
  await tx.run(sql`delete from tainted_places where ${isAt(asset)} and ${isClean}`)
}
