import { type NetworkName, networkByName } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { type Change, ChangeRow, changeOf, type WalletToken } from './taint-store.ts'

/** A change with an unfinished trace: `block` is the next block to trace, `first` the first block with changed frozen amounts. */
export interface Trace extends Change {
  readonly first: bigint
}

const TraceRow = ChangeRow.extend({ first: z.bigint() })

/** Takes traces of the network that earlier transactions left, those in the lowest blocks first. */
export async function takeTraces(tx: Tx, network: string, most: number): Promise<Trace[]> {
  const rows = await tx.many(
    TraceRow,
    sql`
    delete from taint_traces t using (
      select wallet_id, network, token from taint_traces where network = ${network} order by block_number limit ${most}
    ) as lowest
    where t.wallet_id = lowest.wallet_id and t.network = lowest.network and t.token = lowest.token
    returning t.organisation_id, t.environment, t.wallet_id, t.network, t.token, t.block_number as block, t.first_block as first`,
  )
  return rows.map(({ first, ...change }) => ({ ...changeOf(change), first }))
}

/** Stores traces for a later transaction. If an asset already has one, the lower blocks are kept. */
export async function insertTraces(tx: Tx, traces: readonly Trace[]): Promise<void> {
  if (traces.length === 0) return
  const each = <T>(read: (trace: Trace) => T): T[] => traces.map(read)
  await tx.run(sql`
    insert into taint_traces (organisation_id, environment, wallet_id, network, token, block_number, first_block)
    select * from unnest(${each(({ asset }) => asset.tenant.organisationId)}::text[], ${each(({ asset }) => asset.tenant.environment)}::text[],
      ${each(({ asset }) => asset.walletId)}::text[], ${each(({ asset }) => asset.network)}::text[], ${each(({ asset }) => asset.token)}::text[],
      ${each(({ block }) => block)}::bigint[], ${each(({ first }) => first)}::bigint[])
    on conflict (wallet_id, network, token) do update set block_number = least(taint_traces.block_number, excluded.block_number),
      first_block = least(taint_traces.first_block, excluded.first_block)`)
}

/** Returns the assets of these changes that have an unfinished trace. */
export async function listTraced(tx: Tx, changes: readonly Change[]): Promise<WalletToken[]> {
  if (changes.length === 0) return []
  const each = <T>(read: (change: Change) => T): T[] => changes.map(read)
  const rows = await tx.many(
    ChangeRow,
    sql`
    select organisation_id, environment, wallet_id, network, token, block_number as block from taint_traces
    where (wallet_id, network, token) in (
      select * from unnest(${each(({ asset }) => asset.walletId)}::text[], ${each(({ asset }) => asset.network)}::text[],
        ${each(({ asset }) => asset.token)}::text[]))`,
  )
  return rows.map((row) => changeOf(row).asset)
}

/** Condition: whether any trace is unfinished. */
export function isAnyTrace(): Sql {
  return sql`(select block_number from taint_traces limit 1) is not null`
}

/** The networks with unfinished traces. */
export async function listTracedNetworks(db: Queryable): Promise<NetworkName[]> {
  const rows = await db.many(
    z.object({ network: z.string() }),
    sql`select distinct network from taint_traces order by network`,
  )
  return rows.flatMap(({ network }) => networkByName(network)?.name ?? [])
}

/**
 * SQL on a query `q`: an amount above any balance while a trace of flagged money in the token is unfinished, because the trace may reach every wallet of
 * the tenant; otherwise 0.
 */
export const onHoldWhileTraced: Sql = sql`case when exists (
    select from taint_traces t where t.organisation_id = q.organisation_id and t.environment = q.environment and t.network = q.network
      and lower(t.token) = q.token) then 1e60 else 0 end`
