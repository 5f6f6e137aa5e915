import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { type Sql, sql } from '../../../platform/db/db.ts'
import { AuthorizationPayload } from '../../relayer/port.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const migration = readFileSync(
  new URL('../../../platform/db/migrations/0054_gasless_transfers.sql', import.meta.url),
  'utf8',
)

/** The statements of the migration that convert work in progress, without those that change tables. */
function carryingStatements(): string[] {
  const from = migration.indexOf('-- Gasless transfers that are under way')
  return migration
    .slice(from, migration.indexOf('-- What is signed and how far'))
    .split(/;\n/)
    .filter((text) => /insert|update/.test(text))
}

interface Old {
  readonly place: number
  readonly status: 'planned' | 'signed' | 'sent' | 'ended'
  readonly isSent?: boolean
  readonly attempt?: number
  readonly unresolved?: boolean
}

async function insertOld({ place, status, isSent = false, attempt = 0, unresolved = false }: Old) {
  const signature = status === 'planned' ? null : Buffer.from(`${'11'.repeat(32)}${'22'.repeat(32)}1b`, 'hex')
  const id = `wtx_${place}`
  await database.db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, purpose, created_at, metadata)
    values (${id}, 'org_1', 'test', 'cad_1', ${`0xAb${place}`}, '0x02', 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6, 7,
      'direct', 'it is', 'pending', 'transfer', now(), '{}')`)
  await database.db.run(sql`
    insert into transfer_authorisations (transfer_id, network, asset, from_address, nonce, valid_before, signature, status, attempt,
      chain_transaction_id, unresolved, created_at)
    values (${id}, 'base-sepolia', '0xToKeN', ${`0xAb${place}`}, decode(lpad(to_hex(${place}::integer), 64, '0'), 'hex'),
      '2033-05-18T03:33:20.900Z', ${signature}, ${status}, ${attempt}, ${isSent ? 'ctx_1' : null}, ${unresolved}, now())`)
}

async function prepare(): Promise<void> {
  const { db } = database
  await db.run(sql`alter table transfers drop constraint transfers_organisation_id_fkey`)
  await db.run(sql`alter table transfer_authorisations drop constraint transfer_authorisations_status_check,
    add column signature bytea, add column chain_transaction_id text, add column unresolved boolean not null default false`)
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values ('ctx_1', 'base-sepolia', '0x1', 1, '0x2', '\\x', 0, 1, 'transfers.authorised', 'sent', now())`)
  await insertOld({ place: 1, status: 'planned' })
  await insertOld({ place: 2, status: 'signed' })
  await insertOld({ place: 3, status: 'sent', isSent: true, attempt: 1 })
  await insertOld({ place: 4, status: 'sent', isSent: true, attempt: 1, unresolved: true })
  await insertOld({ place: 5, status: 'signed', attempt: 2 })
  await insertOld({ place: 6, status: 'ended', isSent: true, attempt: 1 })
}

test('gasless transfers in progress continue in the relayer, each from its last state', async () => {
  const { db } = database
  await prepare()
  for (const text of carryingStatements()) await db.run({ text, values: [] })
  const Row = z.object({ row: z.string() })
  const texts = async (statement: Sql) => (await db.many(Row, statement)).map(({ row }) => row)
  const relays = sql`
    select concat_ws(' ', subject_id, state, signer, nonce_space, attempts, coalesce(transaction_id, '-'), case when alone then 'alone' else 'shared' end,
      case when next_attempt_at is null then 'later' else 'now' end,
      case when check_at is null then 'unchecked' when check_at <= now() then 'check' else 'at-end' end) as row
    from relays where purpose = 'transfers.gasless' order by subject_id`
  expect(await texts(relays)).toEqual([
    'wtx_2 waiting 0xab2 0xtoken 0 - shared now at-end',
    'wtx_3 included 0xab3 0xtoken 1 ctx_1 alone later unchecked',
    'wtx_4 waiting 0xab4 0xtoken 1 - alone later check',
    'wtx_5 waiting 0xab5 0xtoken 2 - alone now at-end',
  ])
  const { payload } = await db.one(
    z.object({ payload: AuthorizationPayload }),
    sql`select payload from relays where subject_id = 'wtx_2'`,
  )
  expect(payload).toEqual({
    kind: 'eip3009',
    token: '0xToKeN',
    from: '0xAb2',
    to: '0x02',
    value: '7',
    validAfter: '0',
    validBefore: '2000000000',
    nonce: `0x${'2'.padStart(64, '0')}`,
    signature: { kind: 'ecdsa', v: 27, r: `0x${'11'.repeat(32)}`, s: `0x${'22'.repeat(32)}` },
    deployment: null,
  })
  const rows = sql`select concat_ws(' ', transfer_id, status) as row from transfer_authorisations order by transfer_id`
  expect(await texts(rows)).toEqual([
    'wtx_1 planned',
    'wtx_2 signed',
    'wtx_3 signed',
    'wtx_4 signed',
    'wtx_5 signed',
    'wtx_6 ended',
  ])
  const queues = sql`select concat_ws(' ', alone::text, signer) as row from relay_queues order by signer`
  expect(await texts(queues)).toEqual(['false 0xab2', 'true 0xab4', 'true 0xab5'])
  expect(await texts(sql`select purpose as row from chain_transactions`)).toEqual(['relays'])
})
