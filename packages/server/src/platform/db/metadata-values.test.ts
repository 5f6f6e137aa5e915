import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { sql } from './db.ts'
import { listMigrations } from './migrate.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

test('rows from before the migration are found like those after it, and running it again changes nothing', async () => {
  const { db } = database
  const metadata = JSON.stringify({ order: 7, text: 'é', paid: false, none: null, in: { a: 1 }, long: 'x'.repeat(256) })
  const insert = (id: string, purpose: string) => sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, purpose, created_at, metadata)
    values (${id}, 'org_1', 'test', 'mwt_1', '0x1', '0x2', 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6, 1, 'direct', 'it is',
      'pending', ${purpose}, now(), ${metadata}::jsonb)`
  await db.run(sql`alter table transfers drop constraint transfers_organisation_id_fkey`)
  await db.tx(async (tx) => {
    // No trigger runs, as if there was none yet.
    await tx.run(sql`set local session_replication_role = replica`)
    await tx.run(insert('wtx_old', 'transfer'))
    await tx.run(insert('wtx_old_payout', 'withdrawal'))
  })
  await db.run(insert('wtx_new', 'transfer'))
  await db.run(insert('wtx_new_payout', 'withdrawal'))
  const values = () =>
    db.many(
      z.object({ found: z.string() }),
      sql`select concat_ws(' ', row_id, key, value) as found from metadata_values order by 1`,
    )
  const of = (id: string) => [`${id} order 7`, `${id} paid false`, `${id} text é`].map((found) => ({ found }))
  expect(await values()).toEqual(of('wtx_new'))
  const text = (await listMigrations()).find(({ name }) => name.startsWith('0151_'))?.text ?? ''
  for (let run = 0; run < 2; run += 1) {
    await db.run({ text, values: [] })
    expect(await values()).toEqual([...of('wtx_new'), ...of('wtx_old')])
  }
})
