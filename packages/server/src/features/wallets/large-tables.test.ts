import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Db, type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { findKeyOfAddress } from './managed/source-store.ts'
import { amountsOnHold } from './screening/deposit-store.ts'
import { firstPlace, markPendingDepositsDue, markSendersDue } from './screening/follow-store.ts'
import { listSweeps } from './sweep/store.ts'
import { listPlanned } from './sweep/tempo-store.ts'

const rows = 40_000
const tenants = 4_000
let database: TestDatabase
let db: Db

beforeAll(async () => {
  database = await freshDatabase()
  db = database.db
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at)
      select 'org_' || n, 'Acme', 'team', 'enterprise', now() from generate_series(1, ${tenants}::int) as n`,
  )
  await db.run(sql`
    insert into master_wallets (id, organisation_id, environment, account, address, chain, network, supported_tokens, key_version, public_key,
      chain_code, next_child, created_at)
    select 'mwt_' || n, 'org_' || n, 'test', 0, '0xmaster', 'base', 'base-sepolia', '{USDC}', 1, decode(repeat('02', 33), 'hex'),
      decode(repeat('03', 32), 'hex'), 1, now() from generate_series(1, ${tenants}::int) as n`)
  await db.run(sql`
    insert into child_addresses (id, organisation_id, environment, master_wallet_id, child_index, address, metadata, created_at)
    select 'cad_' || n, 'org_' || (n % ${tenants}::int + 1), 'test', 'mwt_' || (n % ${tenants}::int + 1), n, '0x' || lpad(to_hex(n), 40, '0'), '{}', now()
    from generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
    select 'cad_' || n, 'base-sepolia', 'base', 'org_1', 'test', decode(lpad(to_hex(n), 40, '0'), 'hex'), '{USDC}', now()
    from generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at, aml_due_at, aml_status)
    select 'wtx_' || n, 'org_1', 'test', 'cad_' || (n % 100 + 1), 'base-sepolia', 'base', '0x' || n, 0, 'in', 'transfer', 'confirmed',
      '0xtoken', 'USDC', 6, 1, '0xfrom', '0xto', n, '0xblock', now(), now() - interval '1 day', now() - interval '1 hour', case when n % 1000 = 0 then 'pending' else 'clear' end
    from generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into sweeps (id, organisation_id, environment, master_wallet_id, chain, network, token, decimals, trigger, is_partial, status, created_at)
    select 'swp_' || lpad(n::text, 8, '0'), 'org_1', 'test', 'mwt_1', 'base', 'base-sepolia', 'USDC', 6, 'automatic', false, 'completed', now()
    from generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, status, created_at)
    select 'swp_' || lpad(n::text, 8, '0'), 'cad_' || n, 'org_1', 'test', 'base-sepolia', '0xtoken', '0xfrom', '0xto', 1, 0,
      decode(repeat('00', 32), 'hex'), now(), 'swept', now() from generate_series(1, ${rows}::int) as n`)
  await db.run(sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, status, tried_at, created_at)
    select 'swp_00000001', 'cad_' || n, 'org_1', 'test', 'tempo-moderato', '0xtoken', '0x' || lpad(to_hex(n), 40, '0'), '0xto', 1, 0,
      decode(repeat('00', 32), 'hex'), now(), 'planned', now() - n % 3 * interval '1 second', now() + n * interval '1 millisecond' from generate_series(2, ${rows}::int) as n`)
  for (const table of ['child_addresses', 'watched_addresses', 'wallet_transactions', 'sweeps', 'sweep_transfers'])
    await db.run({ text: `analyze ${table}`, values: [] })
})
afterAll(() => database?.drop())

/** The statement that a store would send. */
function statementOf(ask: (recorder: Queryable) => Promise<unknown>): Sql {
  let sent: Sql | undefined
  const record = (_: unknown, statement: Sql) => {
    sent = statement
    return Promise.reject(new Error('recorded'))
  }
  const recorder: Queryable = { one: record, maybeOne: record, many: record, run: (statement) => record(0, statement) }
  ask(recorder).catch(() => undefined)
  if (sent === undefined) throw new Error('no statement was sent')
  return sent
}

const Explained = z.object({
  'QUERY PLAN': z.array(
    z.object({ Plan: z.object({ 'Shared Hit Blocks': z.number(), 'Shared Read Blocks': z.number() }) }),
  ),
})

/** Blocks of tables and indices that the statement reads, including index entries that it skips. */
async function blocksRead(ask: (recorder: Queryable) => Promise<unknown>): Promise<number> {
  const { text, values } = statementOf(ask)
  const statement = { text: `explain (analyze, buffers, format json) ${text}`, values }
  await db.one(Explained, statement)
  const { 'QUERY PLAN': plans } = await db.one(Explained, statement)
  return plans.reduce((sum, { Plan }) => sum + Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'], 0)
}

const tenant = { organisationId: 'org_1', environment: 'test' } as const
const step = { after: firstPlace, now: new Date(0), most: 1_000 }

test.each<[string, (recorder: Queryable) => Promise<unknown>]>([
  ['the key of an address', (on) => findKeyOfAddress(on, `0x${'0'.repeat(36)}1234`)],
  [
    'what is on hold at twenty children',
    (on) => {
      const place = { tenant, network: 'base-sepolia', token: '0xtoken', upTo: 1_000_000n } as const
      return amountsOnHold(
        on,
        Array.from({ length: 20 }, (_, n) => ({ walletId: `cad_${n + 1}`, ...place })),
      )
    },
  ],
  [
    'the amount on hold of a wallet’s token',
    (on) => {
      const requested = { network: 'base-sepolia', token: '0xtoken', upTo: 1_000_000n } as const
      return amountsOnHold(on, [{ tenant, walletId: 'cad_1', ...requested }])
    },
  ],
  [
    'the next few of many transfers that wait for an attempt on Tempo',
    (on) => listPlanned(on, 'tempo-moderato', { most: 20, cursors: new Map() }),
  ],
  [
    'deposits from the senders that a new list adds',
    (on) => markSendersDue(on, { ...step, senders: ['0xlisted'], since: new Date(0) }),
  ],
  ['pending deposits that a new list makes due', (on) => markPendingDepositsDue(on, step)],
  ['a page of a wallet’s sweeps', (on) => listSweeps(on, tenant, 'mwt_1', { limit: 20, after: undefined })],
])('%s is found without reading the table', async (_, ask) => {
  // Twenty places read about eleven blocks each; the tables have thousands.
  expect(await blocksRead(ask)).toBeLessThan(260)
})
