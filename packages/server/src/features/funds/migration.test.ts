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

const migration = readFileSync(new URL('../../platform/db/migrations/0066_reservations.sql', import.meta.url), 'utf8')

/** The statements of the migration that convert work in progress, without those that change tables. */
function carryingStatements(): string[] {
  return migration
    .slice(migration.indexOf('-- Transfers that are under way'))
    .split(/;\n/)
    .filter((text) => text.includes('insert'))
}

interface Old {
  readonly id: string
  readonly network: string
  readonly token: string
  readonly ended?: boolean
}

async function aTransfer({ id, network, token, ended = false }: Old): Promise<void> {
  const endedAt = ended ? new Date(1_000) : null
  await database.db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, purpose, created_at, metadata, ended_at)
    values (${id}, 'org_1', 'test', 'cad_1', '0xChild', '0x02', 'base', ${network}, 'base', ${network}, ${token}, ${token}, 6, 7,
      'direct', 'it is', 'pending', 'transfer', now(), '{}', ${endedAt})`)
}

async function aStep(
  transferId: string,
  {
    position,
    kind,
    sender,
    value = 0,
    transaction,
  }: {
    readonly position: number
    readonly kind: string
    readonly sender: string
    readonly value?: number
    readonly transaction?: { readonly id: string; readonly network: string; readonly nonce: number }
  },
): Promise<void> {
  if (transaction !== undefined)
    await database.db.run(sql`
      insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
      values (${transaction.id}, ${transaction.network}, ${sender}, ${transaction.nonce}, '0x2', '\\x', 0, 1, 'transfers.step', 'sent', now())`)
  await database.db.run(sql`
    insert into transfer_steps (transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id)
    values (${transferId}, ${position}, ${kind}, ${sender}, '0x02', '\\x0102', ${value}, 21000, ${transaction?.id ?? null})`)
}

test('after the upgrade work in progress is reserved, each by its transaction or authorization, and ended work is not', async () => {
  const { db } = database
  for (const table of ['transfers', 'sweeps', 'sweep_transfers', 'reservations'])
    await db
      .run({ text: `alter table ${table} drop constraint ${table}_organisation_id_fkey`, values: [] })
      .catch(() => 0)
  await aTransfer({ id: 'wtx_topped', network: 'base', token: 'USDC' })
  const topUp = { id: 'ctx_1', network: 'base', nonce: 3 }
  await aStep('wtx_topped', { position: 0, kind: 'top-up', sender: '0xMaster', value: 50, transaction: topUp })
  await aStep('wtx_topped', { position: 1, kind: 'send', sender: '0xChild' })
  await aTransfer({ id: 'wtx_coin', network: 'polygon', token: 'POL' })
  const send = { id: 'ctx_2', network: 'polygon', nonce: 8 }
  await aStep('wtx_coin', { position: 0, kind: 'send', sender: '0xChild', value: 7, transaction: send })
  await aTransfer({ id: 'wtx_tempo', network: 'tempo', token: 'pathUSD' })
  await aStep('wtx_tempo', { position: 0, kind: 'send', sender: '0xChild' })
  await aTransfer({ id: 'wtx_gasless', network: 'base', token: 'USDC' })
  await db.run(sql`
    insert into transfer_authorisations (transfer_id, network, asset, from_address, nonce, valid_before, status, created_at)
    values ('wtx_gasless', 'base', '0xToKeN', '0xChild', decode(lpad('ff', 64, '0'), 'hex'), now(), 'signed', now())`)
  await aTransfer({ id: 'wtx_ended', network: 'base', token: 'USDC', ended: true })
  await aStep('wtx_ended', { position: 0, kind: 'send', sender: '0xChild' })
  for (const text of carryingStatements()) await db.run({ text, values: [] })
  const rows = await db.many(
    z.object({ row: z.string() }),
    sql`
    select concat_ws(' ', subject_id, part, network, owner, asset, reason, raw_amount, gas_limit, data_bytes, coalesce(nonce::text, '-'),
      coalesce(right(encode(authorization_nonce, 'hex'), 2), '-')) as row
    from reservations order by subject_id, part, asset`,
  )
  expect(rows.map(({ row }) => row)).toEqual([
    'wtx_coin 0 polygon 0xChild POL gas 7 21000 2 8 -',
    'wtx_gasless 0 base 0xChild USDC transfer 7 0 0 - ff',
    'wtx_tempo 0 tempo 0xChild pathUSD transfer 7 21000 2 - -',
    'wtx_topped 0 base 0xMaster ETH top-up 50 21000 2 3 -',
    'wtx_topped 1 base 0xChild ETH gas 0 21000 2 - -',
    'wtx_topped 1 base 0xChild USDC transfer 7 0 2 - -',
  ])
})
