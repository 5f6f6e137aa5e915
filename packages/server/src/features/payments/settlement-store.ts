import { z } from 'zod'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { columnsOf, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { idIn, idIs } from '../../platform/db/page.ts'
import { type Id, id, type PaymentId } from '../../platform/ids.ts'
import type { Tenant } from '../../platform/tenant.ts'
import { type DueChecks, listDueChecks } from '../plans/index.ts'
import { paymentStatuses } from './schema.ts'
import { countsInMonth, StoredAuthorization, StoredPermit2 } from './store.ts'

/** The columns of a payment that recording an outcome needs, of any tenant. */
export const EndingPayment = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  payer: z.string().nullable(),
})
export type EndingPayment = z.output<typeof EndingPayment>

const IdRow = z.object({ id: z.string() })

const columns = columnsOf(EndingPayment)

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
    where ${idIn(sql`id`, paymentIds)} and status is not distinct from 'verified' and scheme <> 'upto' and settlement is not null
    returning ${relayColumns}`
}

const UptoTerms = z.object({
  /** The smallest charge at verify, in the token's smallest unit; null for a permit that an earlier release verified. */
  least: z.string().transform(BigInt).nullable(),
  /** The gas with which verify simulated the permit; null for a permit that an earlier release verified. */
  gas: z.string().transform(BigInt).nullable(),
})

/** Returns what was stored at verify about the charges of an `upto` payment. */
export function uptoTermsOf(db: Queryable, paymentId: PaymentId): Promise<z.output<typeof UptoTerms> | undefined> {
  return db.maybeOne(
    UptoTerms,
    sql`select settlement ->> 'least' as least, settlement ->> 'gas' as gas from payments where ${idIs(paymentId)} and status is not distinct from 'verified'`,
  )
}

/**
 * Marks an `upto` payment as settling with this amount, in the token's smallest unit; undefined unless it was verified and permits as much. The grant of gas
 * stays that with which the permit was tried.
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
      settlement = settlement || jsonb_build_object('charged', ${charged}::text)
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
  await tx.many(IdRow, sql`select id from payments where ${idIn(sql`id`, paymentIds)} order by id for no key update`)
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
    where p.id = s.id and ${idIn(sql`p.id`, ids)} and p.status is not distinct from 'settling'`)
}

/** Clears the hash of a transaction that did not move these payments' money. */
export async function forgetHashes(tx: Tx, paymentIds: readonly string[]): Promise<void> {
  await tx.run(
    sql`update payments set tx_hash = null where ${idIn(sql`id`, paymentIds)} and status is not distinct from 'settling'`,
  )
}

export const SettlementOutcome = z.object({
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
  /** Whether the payer requested the response again: its owner must redeem the payment before it sends the response. */
  redemptionRequested: z.boolean(),
})
export type SettlementOutcome = z.output<typeof SettlementOutcome>

/** Returns outcomes. It reads the relays too: only they record whether a sent transaction is in a block. */
export function listOutcomes(db: Queryable, paymentIds: readonly PaymentId[]): Promise<SettlementOutcome[]> {
  return db.many(
    SettlementOutcome,
    sql`
    select p.id, p.status, p.tx_hash, p.settled_at, p.failure_reason, coalesce(sent.status in ('mined', 'final'), false) as in_block,
      p.redemption_until is not null as redemption_requested, coalesce(sent.mined_hash, (
        select hash from transaction_attempts a where a.transaction_id = sent.id order by sequence desc limit 1)) as carrier_hash
    from payments p
    left join relays r on p.status = 'settling' and r.purpose = 'payments' and r.subject_id = p.id and r.state = 'included'
    left join chain_transactions sent on sent.id = r.transaction_id
    where ${idIn(sql`p.id`, paymentIds)}`,
  )
}

const Carrier = z.object({
  batchId: id('ctx').nullable(),
  batchPayments: z.bigint(),
  block: z.bigint().nullable(),
  isFinal: z.boolean(),
  gasNanoUsd: StoredBigInt,
})

/** Condition on `relays`: the payments of a transaction that carries some now, or that settled them. */
const inBatch = sql`purpose = 'payments' and state in ('included', 'settled')`

/**
 * Returns the service's transaction that carries a payment, with the number of the tenant's payments in it (at most a hundred); its block, whether
 * that is final, and what the payment's attempts cost.
 */
export function findCarrier(db: Queryable, paymentId: PaymentId): Promise<z.output<typeof Carrier>> {
  return db.one(
    Carrier,
    sql`
    select sent.id as batch_id, sent.mined_block as block, coalesce(sent.status = 'final', false) as is_final, p.gas_used_nano_usd as gas_nano_usd,
      (select count(*) from relays other where other.transaction_id = r.transaction_id and ${inBatch}
        and other.organisation_id = p.organisation_id and other.environment = p.environment) as batch_payments
    from payments p
    left join relays r on r.purpose = 'payments' and r.subject_id = p.id and r.state in ('included', 'settled')
    left join chain_transactions sent on sent.id = r.transaction_id
    where p.id = concat(${paymentId}::text)`,
  )
}

const BatchRow = z.object({ paymentId: id('pay') })

/** Returns the tenant's payments that a transaction of the service carries or settled, at most a hundred. */
export async function listBatch(db: Queryable, tenant: Tenant, batchId: Id<'ctx'>): Promise<PaymentId[]> {
  const rows = await db.many(
    BatchRow,
    sql`
    select subject_id as payment_id from relays
    where transaction_id = ${batchId} and ${inBatch} and organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}`,
  )
  return rows.map(({ paymentId }) => paymentId)
}

/** A payment with the tenant and day of its budget. */
export const Counted = EndingPayment.extend({ network: z.string(), createdAt: z.date() })

/** A payment that this statement ended. */
export const EndedRow = Counted.extend({
  status: z.enum(['settled', 'settlement_failed', 'voided']),
  previousStatus: z.enum(paymentStatuses),
  /** Whether it had a place in the month; see `countsInMonth`. */
  wasCounted: z.boolean(),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
  /** The amount that its next attempt had reserved, in billionths of a US dollar; the row no longer reserves anything. */
  gasReservedNanoUsd: StoredBigInt,
})
export type EndedRow = z.output<typeof EndedRow>

/** The columns of `Counted`. */
export const counted = sql`payments.id, payments.organisation_id, payments.environment, payments.wallet_id, payments.chain, payments.token, payments.decimals,
  payments.raw_amount, payments.payer, payments.network, payments.created_at`
const ended = sql`${counted}, payments.status, payments.tx_hash, payments.failure_reason, previous.status as previous_status, previous.was_counted,
  previous.gas_reserved_nano_usd`

/** A payment whose money moved, with its transaction; null where nothing was owed. */
export interface Settled {
  readonly id: PaymentId
  readonly txHash: string | null
  /** The operator's cost of its transaction, in billionths of a US dollar. */
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
      select id, status, ${countsInMonth} as was_counted, gas_reserved_nano_usd from payments
      where ${idIn(sql`id`, ids)} and status <> 'settled' order by id for no key update
    )
    update payments set status = 'settled', tx_hash = given.tx_hash, settled_at = ${settledAt}, failure_reason = null, has_place = true,
      gas_reserved_nano_usd = 0, gas_used_nano_usd = gas_used_nano_usd + given.gas, check_at = null
    from previous join given using (id) where payments.id = previous.id and ${idIn(sql`payments.id`, ids)}
    returning ${ended}`,
  )
}

/** The end of a payment without money. */
export interface Failed {
  readonly id: PaymentId
  readonly status: 'settlement_failed' | 'voided'
  readonly reason: string
}

/** Ends the payments that are still open; with `from`, only those in this status. Returns the rows that changed. */
export function markPaymentsEnded(
  tx: Tx,
  failed: readonly Failed[],
  from?: 'verified' | 'settling',
): Promise<EndedRow[]> {
  const ids = failed.map(({ id }) => id)
  return tx.many(
    EndedRow,
    sql`
    with given as (
      select * from unnest(${ids}::text[], ${failed.map(({ status }) => status)}::text[],
        ${failed.map(({ reason }) => reason)}::text[]) as row (id, status, reason)
    ), previous as materialized (
      select id, status, ${countsInMonth} as was_counted, gas_reserved_nano_usd from payments
      where ${idIn(sql`id`, ids)} and status = any(${from === undefined ? ['verified', 'settling'] : [from]}::text[])
      order by id for no key update
    )
    update payments set status = given.status, failure_reason = given.reason, tx_hash = null, gas_reserved_nano_usd = 0, check_at = null
    from previous join given using (id) where payments.id = previous.id and ${idIn(sql`payments.id`, ids)}
    returning ${ended}`,
  )
}

/** The budget to which a payment's gas counts. */
export type UsedRow = z.output<typeof Counted>

const ChargedRow = Counted.extend({ nanoUsd: StoredBigInt })

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
    where payments.id = given.id and ${idIn(sql`payments.id`, ids)}
    returning ${counted}, given."nanoUsd" as nano_usd`,
  )
}

/** A payment for which the chain is checked: nobody requested settlement, or it was voided. */
export const CheckedRow = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  network: z.string(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  asset: StoredHex,
  rawAmount: StoredBigInt,
  payer: z.string(),
  settlement: z.union([StoredPermit2, StoredAuthorization]),
  validBefore: z.date(),
  createdAt: z.date(),
  status: z.enum(['verified', 'settling', 'voided']),
})
export type CheckedRow = z.output<typeof CheckedRow>

const checkedColumns = columnsOf(CheckedRow)

/** A condition: whether any payment of the networks is due. */
export function isAnyToCheck(networks: readonly string[], now: Date): Sql {
  return onAnyOf(
    networks,
    sql`select p.check_at from payments p where p.network = n.network and p.check_at is not null and p.check_at <= ${now} order by p.check_at limit 1`,
  )
}

/**
 * Returns payments of one network that are due, fairly by share owner. In a transaction that reads in order it reads no more rows than it returns,
 * however many are due.
 */
export async function listToCheck(
  db: Queryable,
  network: string,
  { now, ...due }: Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date },
): Promise<CheckedRow[]> {
  const paymentIds = await listDueChecks(db, { table: sql`payments`, network, now: sql`${now}::timestamptz`, ...due })
  if (paymentIds.length === 0) return []
  return db.many(
    CheckedRow,
    sql`select ${checkedColumns} from payments where ${idIn(sql`id`, paymentIds)} and coalesce(check_at <= ${now}, false) order by array_position(${paymentIds}::text[], id)`,
  )
}

/** Returns a payer's open payments of one token, over all organisations. */
export function listOpenOf(
  db: Queryable,
  payer: { readonly payer: string; readonly network: string; readonly asset: string },
  most: number,
): Promise<CheckedRow[]> {
  return db.many(
    CheckedRow,
    sql`
    select ${checkedColumns} from payments
    where payer = ${payer.payer} and network = ${payer.network} and asset = ${payer.asset} and status in ('verified', 'settling')
      and settlement ->> 'kind' is distinct from 'tempo'
    order by id limit ${most}`,
  )
}

/**
 * Deletes the claims of voided payments, once their signatures can move no money. A challenge stays used forever, and so does its claim. The identifier of a
 * payment stays its payer's: another purchase under it is refused.
 */
export async function deleteClaims(tx: Tx, paymentIds: readonly PaymentId[]): Promise<void> {
  if (paymentIds.length === 0) return
  const spent = sql`
    from payments p
    where ${idIn(sql`p.id`, paymentIds)} and p.status = 'voided' and c.claim_hash = claim_hash(p.claim_key) and c.payment_id = p.id
      and c.challenge_hash is null`
  await tx.run(sql`update payment_claims c set claim_hash = null ${spent} and c.identifier_hash is not null`)
  await tx.run(sql`delete from payment_claims c where exists (select ${spent}) and c.identifier_hash is null`)
}

/** Sets when each is due next, null for never. A row whose status changed since the check is left alone. */
export async function setCheckAt(
  db: Queryable,
  checks: readonly { readonly id: PaymentId; readonly checkAt: Date | null }[],
): Promise<void> {
  const ids = checks.map(({ id }) => id)
  await db.run(sql`
    update payments set check_at = given.check_at
    from unnest(${ids}::text[], ${checks.map(({ checkAt }) => checkAt)}::timestamptz[]) as given (id, check_at)
    where payments.id = given.id and ${idIn(sql`payments.id`, ids)} and status in ('verified', 'voided')`)
}
