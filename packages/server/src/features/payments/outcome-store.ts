import { z } from 'zod'
import { sql, type Tx } from '../../platform/db/db.ts'
import { oneOf } from '../../platform/db/page.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { paymentStatuses } from './schema.ts'
import { EndingPayment } from './settlement-store.ts'

const NanoUsd = z.string().transform((text) => BigInt(text))

/** A payment with the tenant and day of its budget. */
const Counted = EndingPayment.extend({ network: z.string(), createdAt: z.date() })

/** A payment that this statement ended. */
export const EndedRow = Counted.extend({
  status: z.enum(['settled', 'settlement_failed', 'voided']),
  previousStatus: z.enum(paymentStatuses),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
  /** What its next attempt had reserved, in billionths of a US dollar; the row no longer reserves anything. */
  gasReservedNanoUsd: NanoUsd,
})
export type EndedRow = z.output<typeof EndedRow>

const counted = sql`payments.id, payments.organisation_id, payments.environment, payments.wallet_id, payments.chain, payments.token, payments.decimals,
  payments.raw_amount, payments.payer, payments.network, payments.created_at`
const ended = sql`${counted}, payments.status, payments.tx_hash, payments.failure_reason, previous.status as previous_status,
  previous.gas_reserved_nano_usd`

/** A payment whose money moved, with its transaction; null where nothing was owed. */
export interface Settled {
  readonly id: PaymentId
  readonly txHash: string | null
  /** What its transaction cost the operator, in billionths of a US dollar. */
  readonly gasNanoUsd: bigint
}

/**
 * Marks payments as settled. Returns the rows that changed, so that each is counted and its event written once. A payment that
 * ended without money may settle after all.
 */
export function markSettled(tx: Tx, settled: readonly Settled[], settledAt: Date): Promise<EndedRow[]> {
  const ids = settled.map(({ id }) => id)
  return tx.many(
    EndedRow,
    sql`
    with given as (
      select * from unnest(${ids}::text[], ${settled.map(({ txHash }) => txHash)}::text[],
        ${settled.map(({ gasNanoUsd }) => gasNanoUsd.toString())}::numeric[]) as row (id, tx_hash, gas)
    ), previous as materialized (
      select id, status, gas_reserved_nano_usd from payments
      where ${oneOf(sql`id`, ids)} and status <> 'settled' order by id for no key update
    )
    update payments set status = 'settled', tx_hash = given.tx_hash, settled_at = ${settledAt}, failure_reason = null,
      gas_reserved_nano_usd = 0, gas_used_nano_usd = gas_used_nano_usd + given.gas, check_at = null
    from previous join given using (id) where payments.id = previous.id and ${oneOf(sql`payments.id`, ids)}
    returning ${ended}`,
  )
}

/** How a payment ends without money. */
export interface Failed {
  readonly id: PaymentId
  readonly status: 'settlement_failed' | 'voided'
  readonly reason: string
}

/** Ends the payments that are still open; with `from`, only those in this status. Returns the rows that changed. */
export function markEnded(tx: Tx, failed: readonly Failed[], from?: 'verified' | 'settling'): Promise<EndedRow[]> {
  const ids = failed.map(({ id }) => id)
  return tx.many(
    EndedRow,
    sql`
    with given as (
      select * from unnest(${ids}::text[], ${failed.map(({ status }) => status)}::text[],
        ${failed.map(({ reason }) => reason)}::text[]) as row (id, status, reason)
    ), previous as materialized (
      select id, status, gas_reserved_nano_usd from payments
      where ${oneOf(sql`id`, ids)} and status = any(${from === undefined ? ['verified', 'settling'] : [from]}::text[])
      order by id for no key update
    )
    update payments set status = given.status, failure_reason = given.reason, tx_hash = null, gas_reserved_nano_usd = 0, check_at = null
    from previous join given using (id) where payments.id = previous.id and ${oneOf(sql`payments.id`, ids)}
    returning ${ended}`,
  )
}

/** The budget to which a payment's gas counts. */
export type UsedRow = z.output<typeof Counted>

const ChargedRow = Counted.extend({ nanoUsd: NanoUsd })

/** Adds the gas that an attempt used, in billionths of a US dollar, to each payment. */
export function addGasUsed(
  tx: Tx,
  used: readonly { readonly paymentId: PaymentId; readonly nanoUsd: bigint }[],
): Promise<z.output<typeof ChargedRow>[]> {
  const ids = used.map(({ paymentId }) => paymentId)
  const rows = used.map(({ paymentId, nanoUsd }) => ({ id: paymentId, nanoUsd: nanoUsd.toString() }))
  return tx.many(
    ChargedRow,
    sql`
    update payments set gas_used_nano_usd = gas_used_nano_usd + given."nanoUsd"
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given (id text, "nanoUsd" numeric)
    where payments.id = given.id and ${oneOf(sql`payments.id`, ids)}
    returning ${counted}, given."nanoUsd" as nano_usd`,
  )
}
