import { z } from 'zod'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { idIs, oneOf } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'

/** The columns of a payment that recording an outcome needs, of any tenant. */
export const EndingPayment = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  rawAmount: z.string().transform((text) => BigInt(text)),
  payer: z.string().nullable(),
})
export type EndingPayment = z.output<typeof EndingPayment>

const IdRow = z.object({ id: z.string() })

const columns = sql`id, organisation_id, environment, wallet_id, chain, token, decimals, raw_amount, payer`

/** The columns of `payments` that the relayer needs. */
const relayColumns = sql`id as subject_id, network, organisation_id, environment,
  jsonb_build_object('kind', 'eip3009') || settlement || jsonb_build_object('token', asset) as payload, valid_before, created_at`

/**
 * Marks payments as settling; the statement's rows go to the relayer. Only a verified payment changes, and none of scheme `upto`,
 * since its amount is not known. Running it again changes nothing.
 */
export function markingSettling(paymentIds: readonly PaymentId[], now: Date): Sql {
  return sql`
    update payments set status = 'settling', settling_at = ${now}, check_at = null
    where ${oneOf(sql`id`, paymentIds)} and status is not distinct from 'verified' and scheme <> 'upto' and settlement is not null
    returning ${relayColumns}`
}

/**
 * Marks an `upto` payment as settling with this amount, in the token's smallest unit; undefined unless it was verified and
 * permits as much.
 */
export function markCharged(
  tx: Tx,
  paymentId: PaymentId,
  amount: bigint,
  now: Date,
): Promise<EndingPayment | undefined> {
  const charged = amount.toString()
  return tx.maybeOne(
    EndingPayment,
    sql`
    update payments set status = 'settling', settling_at = ${now}, check_at = null, raw_amount = ${charged}::numeric,
      settlement = jsonb_set(settlement, '{charged}', to_jsonb(${charged}::text))
    where ${idIs(paymentId)} and status is not distinct from 'verified' and settlement ->> 'kind' = 'permit2' and settlement ->> 'scheme' = 'upto'
      and (settlement ->> 'permitted')::numeric >= ${charged}::numeric
    returning ${columns}`,
  )
}

/** Selects a payment that is settling; the statement's row goes to the relayer. */
export function settling(paymentId: PaymentId): Sql {
  return sql`select ${relayColumns} from payments where ${idIs(paymentId)} and status is not distinct from 'settling'`
}

/** Locks payments that are about to end, in the order of their ids. */
export async function lockPayments(tx: Tx, paymentIds: readonly string[]): Promise<void> {
  await tx.many(IdRow, sql`select id from payments where ${oneOf(sql`id`, paymentIds)} order by id for no key update`)
}

/** Stores the newest hash under which payments were sent. */
export async function markHashes(
  tx: Tx,
  sent: readonly { readonly paymentId: string; readonly hash: string }[],
): Promise<void> {
  const ids = sent.map(({ paymentId }) => paymentId)
  await tx.run(sql`
    update payments p set tx_hash = s.hash
    from unnest(${ids}::text[], ${sent.map(({ hash }) => hash)}::text[]) as s (id, hash)
    where p.id = s.id and ${oneOf(sql`p.id`, ids)} and p.status is not distinct from 'settling'`)
}

/** Clears the hash of a transaction that did not move these payments' money. */
export async function forgetHashes(tx: Tx, paymentIds: readonly string[]): Promise<void> {
  await tx.run(
    sql`update payments set tx_hash = null where ${oneOf(sql`id`, paymentIds)} and status is not distinct from 'settling'`,
  )
}

export const Outcome = z.object({
  id: id('pay'),
  status: z.enum(['verified', 'settling', 'settled', 'settlement_failed', 'voided']),
  txHash: z.string().nullable(),
  settledAt: z.date().nullable(),
  failureReason: z.string().nullable(),
  /** Whether the lane's transaction is in a block; false for a payer's own transaction, which no lane sends. */
  inBlock: z.boolean(),
  /**
   * Hash of the transaction that carries the payment now; null if none is signed. A block may contain that transaction without
   * the money moving; then `txHash` is null. It decides nothing before it is final.
   */
  carrierHash: z.string().nullable(),
  /** Whether the payer requested the answer again: its owner must redeem the payment before it sends the answer. */
  redemptionRequested: z.boolean(),
})
export type Outcome = z.output<typeof Outcome>

/** Returns outcomes. It reads the relays too: only they record whether a sent transaction is in a block. */
export function listOutcomes(db: Queryable, paymentIds: readonly PaymentId[]): Promise<Outcome[]> {
  return db.many(
    Outcome,
    sql`
    select p.id, p.status, p.tx_hash, p.settled_at, p.failure_reason, coalesce(sent.status in ('mined', 'final'), false) as in_block,
      p.redemption_until is not null as redemption_requested, coalesce(sent.mined_hash, (
        select hash from transaction_attempts a where a.transaction_id = sent.id order by sequence desc limit 1)) as carrier_hash
    from payments p
    left join relays r on p.status = 'settling' and r.purpose = 'payments' and r.subject_id = p.id and r.state = 'included'
    left join chain_transactions sent on sent.id = r.transaction_id
    where ${oneOf(sql`p.id`, paymentIds)}`,
  )
}
