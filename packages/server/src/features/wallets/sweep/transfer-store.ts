import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'

/** A transfer with the fields for sending it. The lane is the operator's, so these functions work for all tenants. */
export const SweepTransferRow = z.object({
  sweepId: id('swp'),
  childAddressId: id('cad'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  asset: StoredHex,
  fromAddress: StoredHex,
  toAddress: StoredHex,
  rawAmount: StoredBigInt,
  /** The child's frozen amount when the sweep was stored. */
  frozenRawAmount: StoredBigInt,
  nonce: z.instanceof(Uint8Array),
  validBefore: z.date(),
  createdAt: z.date(),
})
export type SweepTransferRow = z.output<typeof SweepTransferRow>
export type TransferKey = Pick<SweepTransferRow, 'sweepId' | 'childAddressId'>

/** Name of a sweep's transfer in relays and reservations. */
export function subjectOf({ sweepId, childAddressId }: TransferKey): string {
  return `${sweepId} ${childAddressId}`
}

/** Columns of `sweep_transfers t`. */
export const columns = sql`t.sweep_id, t.child_address_id, t.organisation_id, t.environment, t.network, t.asset, t.from_address, t.to_address, t.raw_amount,
  t.frozen_raw_amount, t.nonce, t.valid_before, t.created_at`

/** The keys of transfers, as a statement of two columns. */
export function keysOf(transfers: readonly TransferKey[]): Sql {
  const sweepIds = transfers.map(({ sweepId }) => sweepId)
  const childIds = transfers.map(({ childAddressId }) => childAddressId)
  return sql`select * from unnest(${sweepIds}::text[], ${childIds}::text[])`
}

/**
 * Condition on `sweep_transfers t`: the child has no money on hold from an unscreened sender, since that may be part of the transfer, and no trace of
 * flagged money in the token is unfinished, since it may reach the child.
 */
export const isScreened: Sql = sql`not exists (
    select from wallet_transactions w
    where w.organisation_id = t.organisation_id and w.environment = t.environment and w.wallet_id = t.child_address_id
      and w.network = t.network and lower(w.token) = lower(t.asset) and w.direction = 'in' and w.status <> 'withdrawn'
      and w.aml_status = 'pending' and w.on_hold
      and w.created_at < t.created_at + interval '5 minutes')
  and not exists (
    select from taint_traces x where x.organisation_id = t.organisation_id and x.environment = t.environment and x.network = t.network
      and lower(x.token) = lower(t.asset))`

const AmountRow = z.object({ walletId: z.string(), amount: StoredBigInt })

/** A token at some wallets of a network. */
interface Holdings {
  readonly network: string
  readonly asset: string
  readonly walletIds: readonly string[]
}

/**
 * The amounts of a token that screening froze at these wallets, by wallet, in the token's smallest unit; wallets without any are omitted.
 */
export async function listFrozenAmounts(
  db: Queryable,
  tenant: Tenant,
  requested: Holdings,
): Promise<ReadonlyMap<string, bigint>> {
  if (requested.walletIds.length === 0) return new Map()
  const rows = await db.many(
    AmountRow,
    sql`
    select wallet_id, sum(raw_frozen)::text as amount from tainted_places
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and wallet_id = any(${requested.walletIds}::text[])
      and network = ${requested.network} and lower(token) = lower(${requested.asset}) and raw_frozen > 0
    group by wallet_id`,
  )
  return new Map(rows.map((row) => [row.walletId, row.amount]))
}
