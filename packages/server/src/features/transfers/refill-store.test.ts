import { requireNetwork } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fail } from '../../chain/errors.ts'
import { instantOf } from '../../platform/clock.ts'
import { sql } from '../../platform/db/db.ts'
import { createLog } from '../../platform/log.ts'
import { refillChildren } from './refill.ts'
import { listWaiting } from './refill-store.ts'

const signedAt = new Date('2026-01-01T00:00:00Z')
const before = new Date('2026-01-01T00:00:10Z')
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_01h455vb4pex5vsknk084sn02q', 'Acme', 'team', 'enterprise', now())`,
  )
})
afterAll(() => database?.drop())

/** Transfers of one child that were signed one second apart and wait for a block. */
async function queue(
  name: string,
  child: string,
  { nonces, first }: { readonly nonces: number; readonly first: Date },
) {
  const { db } = database
  const ids = sql`select n, 'wtx_' || lpad(${name}::text || n, 26, '0') as transfer, ${name}::text || n as ctx from generate_series(0, ${nonces - 1}::int) as n`
  await db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at)
    select transfer, 'org_01h455vb4pex5vsknk084sn02q', 'test', 'cad_1', ${child}::text, '0xto', 'base', 'base', 'base', 'base', 'USDC', 'USDC', 6, 1,
      'direct', '', 'pending', now() from (${ids}) as made`)
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    select ctx, 'base', ${child}::text, n, '0xto', '', 0, 60000, 'transfers.step', 'sent', now() from (${ids}) as made`)
  await db.run(sql`
    insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
    select ctx, 0, 'base', ctx, '', 1, 1, ${first}::timestamptz + n * interval '1 millisecond' from (${ids}) as made`)
  await db.run(sql`
    insert into transfer_steps (transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id)
    select transfer, 0, 'send', ${child}::text, '0xto', '', 0, 60000, ctx from (${ids}) as made`)
}

test('a child gets its top-up however many transfers wait behind another child that cannot be topped up', async () => {
  await queue('1', '0xaa', { nonces: 150, first: signedAt })
  await queue('2', '0xbb', { nonces: 2, first: new Date(signedAt.getTime() + 5_000) })
  const requested = { network: 'base', before }
  const page = await listWaiting(database.db, { ...requested, after: '' })
  expect(page.map(({ sender, nonce }) => [sender, nonce])).toEqual([
    ['0xaa', 0n],
    ['0xbb', 0n],
  ])
  expect((await listWaiting(database.db, { ...requested, after: '0xaa' })).map(({ sender }) => sender)).toEqual([
    '0xbb',
  ])
})

test('a node that does not respond for one child delays the next child by one run, and not for as long as it does so', async () => {
  const read: unknown[] = []
  const waiting = await listWaiting(database.db, { network: 'base', before, after: '' })
  expect(waiting.map(({ sender }) => sender)).toEqual(['0xaa', '0xbb'])
  const base = requireNetwork('base')
  const ctx = {
    db: database.db,
    clock: { now: () => instantOf(before.getTime() + 60_000) },
    log: createLog({ level: 'silent' }),
    chains: { configured: [base] },
    refillCursors: new Map(),
    findSource: async (_db: unknown, _tenant: unknown, walletId: string) => {
      read.push(walletId)
      throw fail('chain-unavailable', {}, new Error('slow'))
    },
  } as unknown as Parameters<typeof refillChildren.run>[0]
  await database.db.run(sql`update transfers set wallet_id = 'cad_2' where from_address = '0xbb'`)
  for (let run = 0; run < 4; run += 1) await refillChildren.run(ctx)
  expect(read).toEqual(['cad_1', 'cad_2', 'cad_1'])
})
