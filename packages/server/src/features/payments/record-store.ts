import { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { hasSubscriber } from '../../platform/events.ts'
import type { Id } from '../../platform/ids.ts'
import { countedOf, PlanName, plans, sharedLockName } from '../plans/index.ts'
import { type NewPayment, type RecordedColumn, recorded, recordedColumns } from './store.ts'

/** A payment to record, with the values that decide whether it is recorded. */
export interface PaymentToRecord {
  readonly payment: NewPayment
  readonly eventId: Id<'evt'>
  readonly eventPayload: Readonly<Record<string, unknown>>
  /** Most that its settlement costs the operator, in billionths of a US dollar; 0 for a payment that costs nothing. */
  readonly gasNanoUsd: bigint
  /** The time at which the chain is checked for the payment, unless settlement is requested earlier. */
  readonly checkAt: Date | null
  /** The payer's balance of the token, where it limits the payer's open payments. */
  readonly rawBalance: bigint | null
}

/** Limits of a batch. */
export interface BatchLimits {
  readonly nanoUsdPerDayMax: bigint
  readonly openPerPayerMax: number
  /** Payments whose money has already left the payer, so that they do not count as open. */
  readonly spentIds: readonly string[]
  readonly createdAt: Date
  /** Milliseconds after which a payer's transaction that no block includes is idle. */
  readonly unminedMs: number
}

const PlanRow = z.object({ plan: PlanName })

/**
 * Takes the locks of these names and of the organisation's shared quota, always in the same order, and returns the
 * plan. The next statement, which the caller may send at once, sees everything that earlier owners of the locks committed. It is planned
 * once for each connection and without sequential scans, because its plan is kept from when the tables were small. The transaction must not insert
 * payments by any other statement than `insertPayments`: the trigger that reserves the nonces of a payment is off until its end.
 */
export async function beginRecording(tx: Tx, tenant: Tenant, lockNames: readonly string[]): Promise<PlanName> {
  const row = await tx.one(
    PlanRow,
    sql`
    with locked as materialized (
      select pg_advisory_xact_lock(hashtextextended(name, 0)) from
        (select name from (select unnest(${lockNames}::text[]) as name union ${sharedLockName(tenant, 'payments')}) as given
          order by name collate "C" offset 0) as ordered
    )
    select plan, set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
      set_config('purser.claims', 'statement', true) from organisations
    where id = ${tenant.organisationId} and (select count(*) from locked) >= 0`,
  )
  return row.plan
}

export const RecordVerdict = z.enum([
  'recorded',
  'duplicate',
  'plan-limit',
  'gas-budget',
  'too-many-open',
  'insufficient-funds',
  'organisation-deleted',
])
export type RecordVerdict = z.output<typeof RecordVerdict>

interface Recorded {
  /** The outcome of each payment, by its id. */
  readonly verdicts: ReadonlyMap<string, RecordVerdict>
  /** Whether a webhook subscribes to the events that were written. */
  readonly haveSubscribers: boolean
}

/** Payments per calendar month by plan; negative means unlimited. */
const monthlyLimits = JSON.stringify(
  Object.fromEntries(Object.entries(plans).map(([plan, { paymentsPerMonth }]) => [plan, paymentsPerMonth])),
)

/** Idle payments of one payer take at most one part in this many of the month, and all of its open payments of the day's gas; one is always allowed. */
const payerShare = 10

/** Most pending transactions of one payer at the sponsor's expense, over all organisations: each of them may fail. */
const sponsoredPerPayerMax = 5

const VerdictRow = z.object({ id: z.string(), verdict: RecordVerdict, haveSubscribers: z.boolean() })

/**
 * Records a batch of payments in one statement, for every plan, and returns the outcome of each. Nothing else inserts payments.
 *
 * A payment is accepted, in the order of arrival, if
 *
 * - its claim is unused. The statement claims what each payment uses up, and leaves out a payment if another transaction has claimed something of it. A
 *   trigger of `payments` does so for the inserts of a restore and of an earlier version;
 * - the transaction that its transfer is part of was not recorded as a whole;
 * - its nonce is not used by a relay of the service (a transfer of its own wallets) or by a pending transaction of the payer;
 * - the payer's balance covers it in addition to all open payments;
 * - the day's gas budget and the month's quota suffice. A payment that is already on chain is accepted whatever the month's count.
 *
 * Limits per payer; one payment is always allowed:
 *
 * - Idle payments have a share of the month. A payment is idle if nobody has requested its settlement, or if its transaction by the payer is in no
 *   block after `unminedMs`.
 * - All open payments have a share of the day's gas, because each fails at the operator's expense if the payer moves its money away first.
 * - Few sponsored transactions are pending at once, over all organisations.
 *
 * A proof, which pays a price of zero, has a separate count, so that proofs do not use up the quota of payments.
 *
 * For each accepted payment the statement writes the event, the count and the reservation of gas. It names tables of other features, because ten
 * statements in a transaction were measured to cost three times as much. The count is written before the budget, as where payments end: PostgreSQL
 * executes unreferenced CTEs in its own order, and transactions with different orders would wait for each other. The caller has locked what the
 * limits count, and passes no two payments with one claim. Nothing is recorded for a deleted organisation: its deletion locks its payments.
 */
export async function insertPayments(
  tx: Tx,
  tenant: Tenant,
  receipts: readonly PaymentToRecord[],
  limits: BatchLimits,
): Promise<Recorded> {
  const { organisationId, environment } = tenant
  const sentBefore = instantOf(limits.createdAt.getTime() - limits.unminedMs)
  // Of payments on their way, only those by a payer's transaction have a time of their next check.
  const isIdle = sql`(status = 'verified' or check_at is not null and has_place and created_at <= ${sentBefore})`
  const { common, entries } = splitCommon(receipts.map((receipt) => entryOf(tenant, receipt)))
  const rows = await tx.many(
    VerdictRow,
    sql`
    with base as materialized (
      select payment from jsonb_populate_record(null::payments, ${JSON.stringify(common)}::jsonb) as payment
    ), given as materialized (
      select position, entry ->> 'event_id' as event_id, entry -> 'event_payload' as event_payload, (entry ->> 'raw_balance')::numeric as raw_balance,
        to_char(payment.created_at at time zone 'UTC', 'YYYY-MM') as month, (payment.created_at at time zone 'UTC')::date as day,
        case when payment.raw_amount = 0 and payment.status = 'settled' and payment.payer is not null then 'proofs' else 'payments' end as counted_as,
        coalesce(payment.settlement ->> 'sponsoredGas' <> '0', false) as is_sponsored, payment.*
      from jsonb_array_elements(${JSON.stringify(entries)}::jsonb) with ordinality as entries (entry, position)
      cross join lateral jsonb_populate_record((select payment from base), entry) as payment
    ), sharers as materialized (${countedOf(organisationId)}
    ), open as (
      select payers.payer, open.* from (select distinct payer from given where payer is not null) as payers
      cross join lateral (
        select network, asset, sum(raw_amount) filter (where id <> all(${limits.spentIds}::text[])) as raw,
          count(*) filter (where organisation_id = ${organisationId} and environment = ${environment}) as own,
          count(*) filter (where ${isIdle} and organisation_id = ${organisationId} and environment = ${environment}) as idle,
          sum(gas_reserved_nano_usd) filter (where organisation_id in (select id from sharers) and environment = ${environment}) as open_gas,
          count(*) filter (where status = 'settling' and check_at is not null and settlement ->> 'sponsoredGas' <> '0') as sponsored
        from payments where status in ('verified', 'settling') and payer = payers.payer
        group by network, asset) as open
    ), monthly as materialized (
      select (${monthlyLimits}::jsonb ->> plan)::bigint as most from organisations where id = ${organisationId} and deleted_at is null
    ), judged as (
      select position, id, month, day, counted_as, network, status, tx_hash, gas_reserved_nano_usd,
        coalesce(open.raw, 0) + sum(given.raw_amount) filter (where coalesce(open.raw, 0) + given.raw_amount <= raw_balance) over payers > raw_balance
          or coalesce(open.raw, 0) + given.raw_amount > raw_balance as is_short,
        status <> 'settled' and payer is not null and
          coalesce((select sum(own) from open as all_open where all_open.payer = given.payer), 0)
          + count(*) filter (where status <> 'settled') over (partition by payer order by position) > ${limits.openPerPayerMax}
          or is_sponsored and coalesce((select sum(sponsored) from open as all_open where all_open.payer = given.payer and all_open.network = given.network), 0)
          + count(*) filter (where is_sponsored) over (partition by payer, given.network order by position) > ${sponsoredPerPayerMax}::int as is_over_cap,
        status <> 'settled' and monthly.most >= 0 and payer is not null and
          coalesce((select sum(idle) from open as all_open where all_open.payer = given.payer), 0) + (status = 'settling')::int
          + count(*) filter (where status = 'verified') over (partition by payer order by position) > greatest(1, monthly.most / ${payerShare}::int)
          or status <> 'settled' and gas_reserved_nano_usd > 0 and
          coalesce((select sum(open_gas) from open as all_open where all_open.payer = given.payer and all_open.network = given.network), 0)
          + sum(gas_reserved_nano_usd) filter (where status <> 'settled') over (partition by payer, given.network order by position)
          > greatest(gas_reserved_nano_usd, ${limits.nanoUsdPerDayMax.toString()}::numeric / ${payerShare}::int) as is_over_share
      from given cross join monthly left join open using (payer, network, asset)
      where not exists (select from payment_claims as known where known.claim_hash = claim_hash(given.claim_key) offset 0)
        and not exists (select from payment_claims as known where known.claim_hash = claim_hash(substring(given.claim_key from '^(tx:.+):[0-9]+$')) offset 0)
        and not exists (select from payment_claims as known where known.challenge_hash = claim_hash(given.challenge_id) offset 0)
        and not exists (select from relays as known where not known.is_watched and known.network = given.network and known.signer = lower(given.payer)
          and known.nonce_space = case when given.settlement ->> 'kind' = 'permit2' then 'permit2' else lower(given.asset) end
          and known.nonce = lower(given.settlement ->> 'nonce') offset 0)
        and not exists (select from payments as known where given.settlement ->> 'nonceName' is not null and known.payer = given.payer
          and known.network = given.network and known.status in ('verified', 'settling') and known.failure_reason is null
          and known.settlement ->> 'nonceName' = given.settlement ->> 'nonceName' offset 0)
      window payers as (partition by payer, network, asset order by position)
    ), budgets as materialized (
      select network, day, sum(nano_usd) as nano_usd from gas_budgets
      where organisation_id in (select id from sharers) and environment = ${environment} and day in (select day from given) group by network, day
    ), funded as (
      select judged.position, judged.id, month, judged.day, counted_as, status, tx_hash, gas_reserved_nano_usd > 0 and coalesce(budget.nano_usd, 0) + sum(gas_reserved_nano_usd) over (partition by judged.network, judged.day order by position)
        > ${limits.nanoUsdPerDayMax.toString()}::numeric as is_over_budget
      from judged left join budgets as budget on budget.network = judged.network and budget.day = judged.day
      where is_short is not true and is_over_cap is not true and is_over_share is not true
    ), used as materialized (
      select period as month, kind as counted_as, sum(used) as used from usage_counters
      where organisation_id in (select id from sharers) and environment = ${environment} and kind in ('payments', 'proofs')
        and period in (select month from given) group by period, kind
    ), budgeted as (
      select position, id, monthly.most >= 0 and (status <> 'settled' or tx_hash is null) and coalesce(used.used, 0) + row_number() over (partition by month, counted_as order by position)
        > monthly.most as is_over_plan
      from funded cross join monthly left join used using (month, counted_as)
      where not is_over_budget
    ), claimed as (
      insert into payment_claims (payment_id, claim_hash, challenge_hash, identifier_hash)
      select id, claim_hash(claim_key), claim_hash(challenge_id),
        payer_identifier_hash(organisation_id, environment, payer, payment_identifier)
      from given join budgeted using (position, id)
      where not is_over_plan and num_nonnulls(claim_key, challenge_id, payment_identifier) > 0 order by claim_key
      on conflict do nothing
      returning payment_id
    ), made as (
      insert into payments (${recordedColumns})
      select ${recordedColumns} from given join budgeted using (position, id)
      where not is_over_plan and (num_nonnulls(claim_key, challenge_id, payment_identifier) = 0 or id in (select payment_id from claimed))
      returning id
    ), announced as (
      insert into events (id, organisation_id, environment, type, payload, created_at)
      select event_id, ${organisationId}, ${environment}, 'payment.received', event_payload, ${limits.createdAt}
      from given join made using (id)
    ), due as (
      insert into events_due (event_id) select event_id from given join made using (id) where ${hasSubscriber(tenant, 'payment.received')}
      returning event_id
    ), counted as (
      insert into usage_counters (organisation_id, environment, kind, period, used)
      select ${organisationId}, ${environment}, counted_as, month, count(*) from given join made using (id)
      group by counted_as, month order by counted_as collate "C", month
      on conflict (organisation_id, environment, kind, period) do update set used = usage_counters.used + excluded.used
      returning period
    ), reserved as (
      insert into gas_budgets (organisation_id, environment, network, day, nano_usd)
      select ${organisationId}, ${environment}, network, day, sum(gas_reserved_nano_usd) from given join made using (id)
      where gas_reserved_nano_usd > 0 and (select count(*) from counted) >= 0 group by network, day order by network collate "C", day
      on conflict (organisation_id, environment, network, day) do update set nano_usd = gas_budgets.nano_usd + excluded.nano_usd
    )
    select given.id, case when made.id is not null then 'recorded' when budgeted.is_over_plan then 'plan-limit' when funded.is_over_budget then 'gas-budget'
      when judged.is_short then 'insufficient-funds' when judged.is_over_cap or judged.is_over_share then 'too-many-open'
      when not exists (select from monthly) then 'organisation-deleted' else 'duplicate' end as verdict, exists (select from due) as have_subscribers
    from given left join made using (id) left join judged using (id) left join funded using (id) left join budgeted using (id)`,
  )
  return {
    verdicts: new Map(rows.map(({ id, verdict }) => [id, verdict])),
    haveSubscribers: rows.some(({ haveSubscribers }) => haveSubscribers),
  }
}

/** A payment as a row of its table in JSON, with the related values of its statement. */
type Entry = Record<RecordedColumn | 'event_id' | 'event_payload' | 'raw_balance', unknown>

/**
 * Splits the entries of a batch into the values that all of them have, which are sent and converted once, and the rest of each entry.
 *
 * @example
 * splitCommon([{ token: 'USDC', id: 'a' }, { token: 'USDC', id: 'b' }]) // { common: { token: 'USDC' }, entries: [{ id: 'a' }, { id: 'b' }] }
 */
function splitCommon(entries: readonly Entry[]): {
  readonly common: Partial<Entry>
  readonly entries: readonly Partial<Entry>[]
} {
  const [first] = entries
  const common: Partial<Entry> = {}
  for (const column of recorded) {
    const value = first?.[column]
    if (!entries.every((entry) => entry[column] === value)) continue
    if (value !== null) common[column] = value
    // JSON leaves out undefined members.
    for (const entry of entries) entry[column] = undefined
  }
  return { common, entries }
}

/**
 * Returns a payment as a row of its table in JSON, with the related values of its statement; a column that is missing here would be recorded as null.
 * Each column is written out, and times are text, because an object of computed names with dates takes four times as long to make and to serialize.
 */
function entryOf({ organisationId, environment }: Tenant, receipt: PaymentToRecord): Entry {
  const { payment, eventId, eventPayload, gasNanoUsd, checkAt, rawBalance } = receipt
  return {
    id: payment.id,
    log_id: payment.logId,
    organisation_id: organisationId,
    environment,
    wallet_id: payment.walletId,
    api_key_id: payment.apiKeyId,
    protocol: payment.protocol,
    protocol_version: payment.protocolVersion,
    claim_key: payment.claimKey,
    door: payment.entryPoint,
    scheme: payment.scheme,
    challenge_id: payment.challengeId,
    payment_identifier: payment.paymentIdentifier,
    payment_fingerprint: payment.paymentFingerprint,
    chain: payment.chain,
    network: payment.network,
    token: payment.token,
    asset: payment.asset,
    decimals: payment.decimals,
    raw_amount: payment.rawAmount.toString(),
    payer: payment.payer,
    pay_to: payment.payTo,
    settlement: payment.settlement,
    valid_before: textOf(payment.validBefore),
    resource: payment.resource,
    route: payment.route,
    method: payment.method,
    description: payment.description,
    status: payment.status,
    tx_hash: payment.txHash,
    settling_at: textOf(payment.settlingAt),
    settled_at: textOf(payment.settledAt),
    delivery: payment.delivery,
    gas_reserved_nano_usd: gasNanoUsd.toString(),
    check_at: textOf(checkAt),
    created_at: textOf(payment.createdAt),
    event_id: eventId,
    event_payload: eventPayload,
    raw_balance: rawBalance?.toString() ?? null,
  }
}

function textOf(instant: Date | null): string | null {
  return instant === null ? null : instant.toISOString()
}

const FingerprintRow = z.object({ paymentFingerprint: z.string().nullable() })

/**
 * Returns the digest of the payer's payment with this identifier at the tenant; undefined if there is none, and no digest if it was archived. A payment
 * from before migration 0240 has taken its identifier for every payer of the tenant, which binds only its own payer now.
 */
export async function findFingerprint(
  db: Queryable,
  { organisationId, environment }: Tenant,
  { payer, paymentIdentifier }: { readonly payer: string; readonly paymentIdentifier: string },
): Promise<string | undefined> {
  const row = await db.maybeOne(
    FingerprintRow,
    sql`
    select payment_fingerprint from payment_claims left join payments on payments.id = payment_id
    where identifier_hash = payer_identifier_hash(${organisationId}, ${environment}, ${payer}, ${paymentIdentifier})
      or identifier_hash = identifier_hash(${organisationId}, ${environment}, ${paymentIdentifier}) and lower(coalesce(payments.payer, ${payer})) = lower(${payer})
    limit 1`,
  )
  return row === undefined ? undefined : (row.paymentFingerprint ?? '')
}
