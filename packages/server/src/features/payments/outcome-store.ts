import { z } from 'zod'
import { sql, type Tx } from '../../platform/db/db.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { paymentStatuses } from './schema.ts'

const NanoUsd = z.string().transform((text) => BigInt(text))

/** Whose budget and which day a payment counts in. */
const Counted = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  createdAt: z.date(),
})

/** A payment that this statement has ended. */
export const EndedRow = Counted.extend({
  status: z.enum(['settled', 'settlement_failed', 'voided']),
  previousStatus: z.enum(paymentStatuses),
  /** What its next attempt had reserved, in billionths of a US dollar; the row reserves nothing any more. */
  gasReservedNanoUsd: NanoUsd,
})
export type EndedRow = z.output<typeof EndedRow>

const ended = sql`payments.id, payments.organisation_id, payments.environment, payments.network, payments.created_at, payments.status,
  previous.status as previous_status, previous.gas_reserved_nano_usd`

/** Answers the rows that moved, so that each is counted and its event written once. What ended without money may have paid after all. */
export function markSettled(
  tx: Tx,
  settled: readonly { readonly id: PaymentId; readonly txHash: string | null }[],
  settledAt: Date,
): Promise<EndedRow[]> {
  return tx.many(
    EndedRow,
    sql`
    with given as (
      select * from unnest(${settled.map(({ id }) => id)}::text[], ${settled.map(({ txHash }) => txHash)}::text[]) as row (id, tx_hash)
    ), previous as materialized (
      select id, status, gas_reserved_nano_usd from payments
      where id in (select id from given) and status <> 'settled' order by id for no key update
    )
    update payments set status = 'settled', tx_hash = given.tx_hash, settled_at = ${settledAt}, failure_reason = null,
      gas_reserved_nano_usd = 0, check_at = null
    from previous join given using (id) where payments.id = previous.id
    returning ${ended}`,
  )
}

/** How payments end without money. */
export interface Ending {
  readonly status: 'settlement_failed' | 'voided'
  readonly reason: string
  /** Only those in this status end; left out: whatever is open. */
  readonly from?: 'verified' | 'settling'
}

/** Ends what is still open of these; answers the rows that moved. */
export function markEnded(
  tx: Tx,
  paymentIds: readonly PaymentId[],
  { status, reason, from }: Ending,
): Promise<EndedRow[]> {
  return tx.many(
    EndedRow,
    sql`
    with previous as materialized (
      select id, status, gas_reserved_nano_usd from payments
      where id = any(${paymentIds}::text[]) and status = any(${from === undefined ? ['verified', 'settling'] : [from]}::text[]) order by id for no key update
    )
    update payments set status = ${status}, failure_reason = ${reason}, tx_hash = null, gas_reserved_nano_usd = 0, check_at = null
    from previous where payments.id = previous.id
    returning ${ended}`,
  )
}

/** Of which budget a payment's gas is. */
export type UsedRow = z.output<typeof Counted>

const ChargedRow = Counted.extend({ nanoUsd: NanoUsd })

/** Adds what an attempt used, in billionths of a US dollar, to each payment. */
export function addGasUsed(
  tx: Tx,
  used: readonly { readonly paymentId: PaymentId; readonly nanoUsd: bigint }[],
): Promise<z.output<typeof ChargedRow>[]> {
  const rows = used.map(({ paymentId, nanoUsd }) => ({ id: paymentId, nanoUsd: nanoUsd.toString() }))
  return tx.many(
    ChargedRow,
    sql`
    update payments set gas_used_nano_usd = gas_used_nano_usd + given."nanoUsd"
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given (id text, "nanoUsd" numeric)
    where payments.id = given.id
    returning payments.id, organisation_id, environment, network, created_at, given."nanoUsd" as nano_usd`,
  )
}
