import { z } from 'zod'
import { dropSignedBytes } from '../packages/server/src/archive/signed-bytes.ts'
import { countNextQuarter, markQuarters } from '../packages/server/src/features/payments/rollups/rollup-store.ts'
import type { Db } from '../packages/server/src/platform/db/db.ts'
import { sql } from '../packages/server/src/platform/db/db.ts'
import { type Expressions, fillTable, statement } from '../packages/server/test/fill-table.ts'

/** The organisation with half of the rows; 200 other organisations have the rest. */
export interface Owner {
  readonly organisationId: string
  readonly apiKeyId: string
  readonly walletId: string
  readonly webhookId: string
}

const otherCount = 200
/** Days over which payments are spread, and those over which events are kept. */
const days = 90
const eventDays = 29
const rowsPerStatement = 250_000

/** Writes the other organisations. */
export async function prepareGrowth(db: Db): Promise<void> {
  await defineIds(db)
  await fillTable(
    db,
    'organisations',
    { id: `bench_id('org', 1700000000000, n)`, name: `'Other ' || n`, type: `'enterprise'`, plan: `'enterprise'` },
    { last: otherCount },
  )
}

/**
 * Fills the tables that grow with use with `payments` payments and what belongs to them, in final states, instead of the rows
 * that are there.
 */
export async function fillGrowth(db: Db, owner: Owner, payments: number): Promise<void> {
  const tables = tablesOf(owner, payments)
  await db.run(
    statement(
      `truncate ${Object.keys(tables).join(', ')}, payment_rollups, settlement_times, payment_rollup_changes, vault_counts, vault_count_changes, wallet_rollups cascade`,
    ),
  )
  await db.run(statement(`update payment_rollup_state set sealed_until = 'epoch', marked_until = 'epoch'`))
  // New rows have smaller keys than the rows that these walks have passed.
  await db.run(statement(`update signed_bytes_walks set after = case name when 'relays' then '0' else '' end`))
  await db.run(statement('truncate signed_bytes_kept'))
  for (const [table, { share, columns }] of Object.entries(tables)) {
    const count = Math.max(1, Math.round(payments * share))
    for (let first = 1; first <= count; first += rowsPerStatement)
      await fillTable(db, table, columns, { first, last: Math.min(count, first + rowsPerStatement - 1) })
  }
  await db.run(statement('analyze'))
}

/** Defines `bench_id(prefix, ms, n)`: the id that sorts by time and number as the service's own do. */
async function defineIds(db: Db): Promise<void> {
  await db.run(
    statement(`create or replace function bench_id(prefix text, ms bigint, n bigint) returns text language sql immutable as $$
      select prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> (5 * place)) & 31)::int + 1, 1), '' order by place desc)
        || 'e' || lpad(n::text, 15, '0') from generate_series(0, 9) as place $$`),
  )
}

interface Filled {
  /** Rows for each payment. */
  readonly share: number
  readonly columns: Expressions
}

function tablesOf(owner: Owner, payments: number): Readonly<Record<string, Filled>> {
  const now = Date.now()
  const msOf = (kept: number, count: number, n = 'n') =>
    `(${now - kept * 86_400_000} + ${n}::bigint * ${Math.floor((kept * 86_400_000) / Math.max(1, count))})`
  const of = (share: number, kept: number, columns: (ms: string) => Expressions): Filled => {
    const ms = msOf(kept, payments * share)
    const organisation = `case when n % 2 = 0 then '${owner.organisationId}' else bench_id('org', 1700000000000, n % ${otherCount} + 1) end`
    return {
      share,
      columns: {
        organisation_id: organisation,
        environment: `'test'`,
        created_at: `to_timestamp(${ms} / 1000.0)`,
        ...columns(ms),
      },
    }
  }
  const hash = `'0x' || md5('a' || n) || md5('b' || n)`
  const address = `'0x' || substr(md5('c' || n) || md5('d' || n), 1, 40)`
  const signature = `jsonb_build_object('kind', 'ecdsa', 'v', 27, 'r', ${hash}, 's', '0x' || md5('f' || n) || md5('g' || n))`
  const authorization = `jsonb_build_object('kind', 'eip3009', 'from', ${address}, 'to', ${address}, 'value', '10000', 'validAfter', '0',
    'validBefore', '1795349100', 'nonce', ${hash}, 'deployment', null, 'signature', ${signature})`
  // Call data of ten authorizations: signatures, which do not compress.
  const bytes = `decode((select string_agg(md5(n || ' ' || part), '') from generate_series(1, 260) as part), 'hex')`
  return {
    payments: of(1, days, (ms) => ({
      id: `bench_id('pay', ${ms}, n)`,
      log_id: `bench_id('plog', ${ms}, n)`,
      wallet_id: `'${owner.walletId}'`,
      api_key_id: `'${owner.apiKeyId}'`,
      protocol: `'x402'`,
      protocol_version: '2',
      door: `'verify'`,
      scheme: `'exact'`,
      claim_key: `'eip3009:eip155:84532:' || ${hash}`,
      chain: `'base-sepolia'`,
      network: `'base-sepolia'`,
      token: `'USDC'`,
      asset: address,
      decimals: '6',
      raw_amount: `10000 + n % 1000`,
      payer: address,
      pay_to: address,
      settlement: authorization,
      valid_before: `to_timestamp(${ms} / 1000.0 + 300)`,
      resource: `'https://api.example.com/reports/' || n % 20`,
      route: `'/reports/' || n % 20`,
      method: `'GET'`,
      status: `case when n % 50 = 0 then 'voided' else 'settled' end`,
      tx_hash: hash,
      settled_at: `to_timestamp(${ms} / 1000.0 + 3)`,
    })),
    payment_claims: of(1, days, (ms) => ({
      payment_id: `bench_id('pay', ${ms}, n)`,
      claim_hash: `claim_hash('eip3009:eip155:84532:' || ${hash})`,
      challenge_hash: 'null',
      identifier_hash: 'null',
    })),
    relays: of(1, days, (ms) => ({
      network: `'base-sepolia'`,
      state: `'settled'`,
      purpose: `'payments'`,
      subject_id: `bench_id('pay', ${ms}, n)`,
      payload: authorization,
    })),
    chain_transactions: of(0.1, days, () => ({
      sender: address,
      network: `'base-sepolia'`,
      status: `'final'`,
      nonce: 'n',
      id: `bench_id('ctx', ${msOf(days, payments * 0.1)}, n)`,
      data: bytes,
    })),
    transaction_attempts: of(0.1, days, () => ({
      sequence: '0',
      raw: bytes,
      transaction_id: `bench_id('ctx', ${msOf(days, payments * 0.1)}, n)`,
    })),
    events: of(1, eventDays, (ms) => ({
      id: `bench_id('evt', ${ms}, n)`,
      type: `'payment.received'`,
      payload: `jsonb_build_object('paymentId', 'pay_' || n, 'payer', ${address}, 'amount', '0.01', 'txHash', ${hash})`,
    })),
    webhook_deliveries: of(1, eventDays, (ms) => ({
      id: `bench_id('del', ${ms}, n)`,
      webhook_id: `'${owner.webhookId}'`,
      event_id: `bench_id('evt', ${ms}, n)`,
      type: `'payment.received'`,
      status: `'succeeded'`,
      ended_at: 'now()',
    })),
    webhook_attempts: of(1, eventDays, (ms) => ({
      id: `bench_id('att', ${ms}, n)`,
      webhook_id: `'${owner.webhookId}'`,
      delivery_id: `bench_id('del', ${ms}, n)`,
      status: `'succeeded'`,
      response_status: '200',
      response_body: `'ok'`,
    })),
    wallet_transactions: of(0.333, days, (ms) => ({
      id: `bench_id('wtx', ${ms}, n)`,
      wallet_id: `'${owner.walletId}'`,
      network: `'base-sepolia'`,
      chain: `'base-sepolia'`,
      tx_hash: hash,
      token: address,
      from_address: address,
      to_address: address,
      block_hash: hash,
      direction: `'in'`,
      kind: `'transfer'`,
      status: `'confirmed'`,
      token_symbol: `'USDC'`,
      decimals: '6',
      aml_status: `'clear'`,
      aml_due_at: `'infinity'`,
      block_number: 'n',
    })),
    transfers: of(0.067, days, (ms) => ({
      id: `bench_id('wtx', ${ms}, n)`,
      wallet_id: `bench_id('mwt', 1700000000000, 1)`,
      from_address: address,
      to_address: address,
      route_reason: `'only'`,
      status: `'confirmed'`,
      ended_at: 'now()',
      answered: `'confirmed'`,
      route: `'direct'`,
      from_network: `'base-sepolia'`,
      to_network: `'base-sepolia'`,
      from_chain: `'base-sepolia'`,
      to_chain: `'base-sepolia'`,
      from_token: `'USDC'`,
      to_token: `'USDC'`,
      decimals: '6',
    })),
    // A value that all transfers have.
    metadata_values: of(0.067, days, (ms) => ({
      key: `'batch'`,
      value: `'nightly'`,
      row_id: `bench_id('wtx', ${ms}, n)`,
    })),
    vaults: of(0.067, days, (ms) => ({
      id: `bench_id('vlt', ${ms}, n)`,
      counted_as: `'active'`,
      expires_at: `now() + interval '1 year'`,
    })),
    audit_log: of(0.333, days, (ms) => ({
      id: `bench_id('aud', ${ms}, n)`,
      sequence: 'n + 1000',
      action: `'payment.refund'`,
      actor: `'{"kind":"system"}'`,
      environment: `case when n % 4 = 0 then 'live' else 'test' end`,
    })),
    sessions: of(0.067, days, (ms) => ({
      id: `bench_id('sess', ${ms}, n)`,
      payment_id: `bench_id('pay', ${msOf(days, payments, '(n * 14)')}, n * 14)`,
      vault_id: `'vlt_01h455vb4pex5vsknk084sn02q'`,
      wallet_id: `'${owner.walletId}'`,
      revoked_at: 'now()',
    })),
    screenings: of(0.067, days, (ms) => ({ id: `bench_id('scr', ${ms}, n)` })),
  }
}

/**
 * Counts the payments of the past and the vaults, and drops the signed bytes of what ended a week ago, as the service does in the background; returns
 * the seconds that it took. The tables that had the bytes are then without free space, which later payments would use.
 */
export async function rollUp(db: Db): Promise<number> {
  const began = performance.now()
  await markQuarters(db)
  while (await countNextQuarter(db));
  await db.run(sql`
    insert into vault_counts (organisation_id, environment, active, persisted, bytes)
    select organisation_id, environment, count(*) filter (where counted_as = 'active'), count(*) filter (where counted_as = 'persisted'), sum(bytes)
    from vaults group by organisation_id, environment`)
  await db.run(sql`
    insert into wallet_rollups (wallet_id, network, token, span, organisation_id, environment, raw_amount)
    select wallet_id, network, token, wallet_rollup_span(block_number), organisation_id, environment, sum(raw_amount)
    from wallet_transactions group by 1, 2, 3, 4, 5, 6`)
  await db.run(statement('vacuum (analyze) payment_rollups, settlement_times'))
  const isSigned = sql`select from payments where settlement is not null and settled_at < now() - interval '8 days' limit 1`
  while ((await db.run(isSigned)) > 0) await dropSignedBytes({ db }, new Date())
  await db.run(statement('vacuum (full, analyze) payments, relays, chain_transactions, transaction_attempts'))
  return (performance.now() - began) / 1_000
}

const Size = z.object({ name: z.string(), bytes: z.bigint() })

/** Bytes of each table with its indexes, largest first. */
export function listSizes(db: Db): Promise<z.output<typeof Size>[]> {
  return db.many(
    Size,
    sql`select relname as name, pg_total_relation_size(relid) as bytes from pg_stat_user_tables order by bytes desc limit 12`,
  )
}
