import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { sql } from '../../../platform/db/db.ts'
import { AuthorizationPayload } from '../../relayer/port.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const migration = readFileSync(
  new URL('../../../platform/db/migrations/0053_relayed_sweeps.sql', import.meta.url),
  'utf8',
)

/** The statements of the migration that convert work in progress, without those that change tables. */
function carryingStatements(): string[] {
  const from = migration.indexOf('-- Sweeps that are under way')
  return migration
    .slice(from, migration.indexOf('-- What is signed and how far'))
    .split(/;\n/)
    .filter((text) => /insert|update/.test(text))
}

interface Old {
  readonly child: number
  readonly status: string
  readonly isSigned?: boolean
  readonly transactionId?: string
  readonly attempt?: number
  readonly unresolved?: boolean
}

async function insertOld({ child, status, isSigned = true, transactionId, attempt = 0, unresolved = false }: Old) {
  const signature = Buffer.from(`${'11'.repeat(32)}${'22'.repeat(32)}1c`, 'hex')
  await database.db.run(sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, signature, status, attempt, chain_transaction_id, unresolved, tx_hash, created_at)
    values ('swp_1', ${`cad_${child}`}, 'org_1', 'test', 'base-sepolia', '0xToKeN', ${`0xAb${child}`}, '0x02', 7, 0,
      decode(lpad(to_hex(${child}::integer), 64, '0'), 'hex'), '2033-05-18T03:33:20.900Z', ${isSigned ? signature : null}, ${status}, ${attempt},
      ${transactionId ?? null}, ${unresolved}, ${transactionId ?? null}, now())`)
}

async function prepare(): Promise<void> {
  const { db } = database
  await db.run(sql`alter table sweep_transfers drop constraint sweep_transfers_sweep_id_fkey,
    drop constraint sweep_transfers_child_address_id_fkey, drop constraint sweep_transfers_organisation_id_fkey,
    add column signature bytea, add column unresolved boolean not null default false`)
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values ('ctx_1', 'base-sepolia', '0x1', 1, '0x2', '\\x', 0, 1, 'wallets.sweep', 'sent', now())`)
  await insertOld({ child: 1, status: 'planned', isSigned: false })
  await insertOld({ child: 2, status: 'signed' })
  await insertOld({ child: 3, status: 'sent', transactionId: 'ctx_1', attempt: 1 })
  await insertOld({ child: 4, status: 'sent', transactionId: 'ctx_1', attempt: 1, unresolved: true })
  await insertOld({ child: 5, status: 'swept', transactionId: 'ctx_1', attempt: 1 })
  await insertOld({ child: 6, status: 'sent', transactionId: 'ctx_1', isSigned: false })
}

test('sweeps in progress continue in the relayer, each from its last state, and those on Tempo stay', async () => {
  const { db } = database
  await prepare()
  for (const text of carryingStatements()) await db.run({ text, values: [] })
  const Row = z.object({ row: z.string() })
  const texts = async (statement: ReturnType<typeof sql>) => (await db.many(Row, statement)).map(({ row }) => row)
  const relays = sql`
    select concat_ws(' ', subject_id, state, signer, nonce_space, attempts, coalesce(transaction_id, '-'), case when alone then 'alone' else 'shared' end,
      case when next_attempt_at is null then 'later' else 'now' end,
      case when check_at is null then 'unchecked' when check_at <= now() then 'check' else 'at-end' end) as row
    from relays order by subject_id`
  expect(await texts(relays)).toEqual([
    'swp_1 cad_2 waiting 0xab2 0xtoken 0 - shared now at-end',
    'swp_1 cad_3 included 0xab3 0xtoken 1 ctx_1 alone later unchecked',
    'swp_1 cad_4 waiting 0xab4 0xtoken 1 - alone later check',
  ])
  const payloads = await db.many(
    z.object({ payload: AuthorizationPayload }),
    sql`select payload from relays order by subject_id`,
  )
  expect(payloads[0]?.payload).toEqual({
    kind: 'eip3009',
    token: '0xToKeN',
    from: '0xAb2',
    to: '0x02',
    value: '7',
    validAfter: '0',
    validBefore: '2000000000',
    nonce: `0x${'2'.padStart(64, '0')}`,
    signature: { kind: 'ecdsa', v: 28, r: `0x${'11'.repeat(32)}`, s: `0x${'22'.repeat(32)}` },
    deployment: null,
  })
  const rows = sql`select concat_ws(' ', child_address_id, status, coalesce(tx_hash, '-')) as row from sweep_transfers order by child_address_id`
  expect(await texts(rows)).toEqual([
    'cad_1 planned -',
    'cad_2 signed -',
    'cad_3 sent ctx_1',
    'cad_4 signed -',
    'cad_5 swept ctx_1',
    'cad_6 sent ctx_1',
  ])
  expect(await texts(sql`select concat_ws(' ', alone::text, signer) as row from relay_queues order by signer`)).toEqual(
    ['false 0xab2', 'true 0xab4'],
  )
  expect(await texts(sql`select purpose as row from chain_transactions`)).toEqual(['relays'])
})
