import { z } from 'zod'
import { type Sql, sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { StoredAddress } from '../store.ts'

const Amount = z.string().transform((text) => BigInt(text))

/** A transfer with the fields for sending it. The lane is the operator's, so these functions work for all tenants. */
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
  /** The child's frozen amount when the sweep was stored. */
  frozenRawAmount: Amount,
  nonce: z.instanceof(Uint8Array),
  validBefore: z.date(),
  createdAt: z.date(),
})
export type TransferRow = z.output<typeof TransferRow>
export type TransferKey = Pick<TransferRow, 'sweepId' | 'childAddressId'>

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

/** Condition on `sweep_transfers t`: the child has no money on hold from an unscreened sender, since that may be part of the transfer. */
export const isScreened: Sql = sql`not exists (
    select from wallet_transactions w
    where w.organisation_id = t.organisation_id and w.environment = t.environment and w.wallet_id = t.child_address_id
      and w.network = t.network and lower(w.token) = lower(t.asset) and w.direction = 'in' and w.status <> 'withdrawn'
      and w.aml_status = 'pending' and w.on_hold
      and w.created_at < t.created_at + interval '5 minutes')`
