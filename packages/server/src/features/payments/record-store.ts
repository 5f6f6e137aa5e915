import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql } from '../../platform/db/db.ts'
import type { Id } from '../../platform/ids.ts'
import type { NewPayment } from './store.ts'

const IdRow = z.object({ id: z.string() })

export interface NewReceipt {
  readonly payment: NewPayment
  readonly eventId: Id<'evt'>
  readonly eventPayload: Readonly<Record<string, unknown>>
  /** Gas to reserve for its settlement; 0 for a payment that never goes on chain. */
  readonly gas: bigint
}

/** What a round counts beside its rows. */
export interface RoundCount {
  readonly month: string
  readonly day: string
  readonly createdAt: Date
}

/**
 * Everything that verifying a round of payments writes, in one statement, for tenants whose plan sets no limit: payments
 * whose claim nobody holds, and for exactly those the event, the month's count and the gas. It names tables of other
 * rooms because ten statements in a transaction were measured to cost three times as much. Answers the ids that were made.
 */
export async function insertReceipts(
  db: Queryable,
  tenant: Tenant,
  receipts: readonly NewReceipt[],
  count: RoundCount,
): Promise<ReadonlySet<string>> {
  const rows = receipts.map(({ payment, eventId, eventPayload, gas }) => ({
    ...payment,
    rawAmount: payment.rawAmount.toString(),
    eventId,
    eventPayload,
    gas: gas.toString(),
  }))
  const { organisationId, environment } = tenant
  const made = await db.many(
    IdRow,
    sql`
    with given as (
      select * from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id text, "logId" text, "walletId" text, "apiKeyId" text,
        protocol text, "protocolVersion" smallint, "claimKey" text, door text, scheme text, "challengeId" text, "paymentIdentifier" text,
        "paymentFingerprint" text, chain text, network text, token text, asset text, decimals smallint, "rawAmount" numeric, payer text,
        "payTo" text, settlement jsonb, "validBefore" timestamptz, resource text, route text, method text, description text, status text,
        "txHash" text, "settlingAt" timestamptz, "settledAt" timestamptz, "createdAt" timestamptz, "eventId" text, "eventPayload" jsonb, gas numeric)
    ), made as (
      insert into payments (id, log_id, organisation_id, environment, wallet_id, api_key_id, protocol, protocol_version, claim_key,
        door, scheme, challenge_id, payment_identifier, payment_fingerprint, chain, network, token, asset, decimals, raw_amount, payer, pay_to,
        settlement, valid_before, resource, route, method, description, status, tx_hash, settling_at, settled_at, created_at)
      select id, "logId", ${organisationId}, ${environment}, "walletId", "apiKeyId", protocol, "protocolVersion", "claimKey", door, scheme,
        "challengeId", "paymentIdentifier", "paymentFingerprint", chain, network, token, asset, decimals, "rawAmount", payer, "payTo",
        nullif(settlement, 'null'::jsonb), "validBefore", resource, route, method, description, status, "txHash", "settlingAt", "settledAt",
        "createdAt"
      from given order by "claimKey"
      on conflict do nothing
      returning id, network
    ), told as (
      insert into events (id, organisation_id, environment, type, payload, created_at)
      select "eventId", ${organisationId}, ${environment}, 'payment.received', "eventPayload", ${count.createdAt}
      from given join made using (id)
    ), counted as (
      insert into usage_counters (organisation_id, environment, kind, period, used)
      select ${organisationId}, ${environment}, 'payments', ${count.month}, count(*) from made having count(*) > 0
      on conflict (organisation_id, environment, kind, period) do update set used = usage_counters.used + excluded.used
    ), reserved as (
      insert into settlement_budgets (organisation_id, environment, network, day, gas_reserved)
      select ${organisationId}, ${environment}, network, ${count.day}::date, sum(given.gas)
      from made join given using (id, network) where given.gas > 0 group by network order by network collate "C"
      on conflict (organisation_id, environment, network, day) do update set gas_reserved = settlement_budgets.gas_reserved + excluded.gas_reserved
    )
    select id from made`,
  )
  return new Set(made.map((row) => row.id))
}
