import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from '../../platform/db/db.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const migration = readFileSync(new URL('../../platform/db/migrations/0052_relays.sql', import.meta.url), 'utf8')

/** The statements of the migration that copy what is in progress, without those that create tables. */
function carryingStatements(): string[] {
  const from = migration.indexOf('-- Payments that are under way.')
  const to = migration.indexOf("-- A settlement's state stands in its relay alone.")
  return migration
    .slice(from, to)
    .split(/;\n/)
    .filter((text) => /insert|update/.test(text))
}

const ecdsa = { kind: 'ecdsa', v: 27, r: '0x01', s: '0x02' }
const authorization = {
  from: '0xAb',
  to: '0x02',
  value: '1',
  validAfter: '0',
  validBefore: '2000000000',
  deployment: null,
}

interface Old {
  readonly id: string
  readonly settlement: Readonly<Record<string, unknown>>
  readonly status?: string
  readonly transactionId?: string
  readonly attempts?: number
  readonly unresolved?: boolean
}

async function insertOld({
  id,
  settlement,
  status = 'settling',
  transactionId,
  attempts = 0,
  unresolved = false,
}: Old) {
  await database.db.run(sql`
    insert into payments (id, log_id, organisation_id, environment, api_key_id, protocol, chain, network, token, asset, decimals, raw_amount, pay_to,
      settlement, valid_before, status, settle_attempt, chain_transaction_id, unresolved, created_at)
    values (${id}, ${`log ${id}`}, 'org_1', 'test', 'key_1', 'x402', 'base', 'base-sepolia', 'USDC', '0xToKeN', 6, 1, '0x02',
      ${JSON.stringify(settlement)}, now() + interval '1 hour', ${status}, ${attempts}, ${transactionId ?? null}, ${unresolved}, now())`)
}

test('settlements in progress at the migration continue in the new table from their present state', async () => {
  const { db } = database
  await db.run(sql`
    alter table payments add column settle_attempt integer not null default 0, add column chain_transaction_id text,
      add column unresolved boolean not null default false`)
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values ('ctx_1', 'base-sepolia', '0x1', 1, '0x2', '\\x', 0, 1, 'payments.settle', 'sent', now())`)
  const eip3009 = (nonce: string) => ({ ...authorization, nonce, signature: ecdsa })
  await insertOld({ id: 'pay_waiting', settlement: eip3009('0x0A') })
  await insertOld({
    id: 'pay_included',
    settlement: { kind: 'eip3009', ...eip3009('0x0b') },
    transactionId: 'ctx_1',
    attempts: 1,
  })
  await insertOld({
    id: 'pay_left',
    settlement: eip3009('0x0c'),
    transactionId: 'ctx_1',
    attempts: 1,
    unresolved: true,
  })
  const wallet = { ...authorization, nonce: '0x0d', signature: { kind: 'bytes', signature: '0x01' } }
  await insertOld({ id: 'pay_wallet', settlement: wallet })
  await insertOld({ id: 'pay_permit', settlement: { kind: 'permit2', owner: '0xCd', nonce: '7', token: '0xToKeN' } })
  await insertOld({ id: 'pay_tempo', settlement: { kind: 'tempo', raw: '0x' } })
  await insertOld({ id: 'pay_verified', settlement: eip3009('0x0e'), status: 'verified' })
  for (const text of carryingStatements()) await db.run({ text, values: [] })

  const Row = z.object({ row: z.string() })
  const rows = await db.many(
    Row,
    sql`
    select concat_ws(' ', subject_id, state, signer, nonce_space, nonce, payload ->> 'kind', payload ->> 'token', attempts, coalesce(transaction_id, '-'),
      case when alone then 'alone' else 'shared' end, case when next_attempt_at is null then 'later' else 'now' end,
      case when check_at is null then 'unchecked' when check_at <= now() then 'check' else 'at-end' end) as row
    from relays order by subject_id`,
  )
  expect(rows.map(({ row }) => row)).toEqual([
    'pay_included included 0xab 0xtoken 0x0b eip3009 0xToKeN 1 ctx_1 alone later unchecked',
    'pay_left waiting 0xab 0xtoken 0x0c eip3009 0xToKeN 1 - alone later check',
    'pay_permit waiting 0xcd permit2 7 permit2 0xToKeN 0 - alone now at-end',
    'pay_waiting waiting 0xab 0xtoken 0x0a eip3009 0xToKeN 0 - shared now at-end',
    'pay_wallet waiting 0xab 0xtoken 0x0d eip3009 0xToKeN 0 - alone now at-end',
  ])
  const queues = await db.many(
    Row,
    sql`select concat_ws(' ', alone::text, signer) as row from relay_queues order by alone, signer`,
  )
  expect(queues.map(({ row }) => row)).toEqual(['false 0xab', 'true 0xab', 'true 0xcd'])
  const purposes = await db.many(Row, sql`select purpose as row from chain_transactions`)
  expect(purposes.map(({ row }) => row)).toEqual(['relays'])
})
