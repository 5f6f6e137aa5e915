import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { rowsRead } from '../../../../test/rows-read.ts'
import { sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { countTokens } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

test('the tokens of a full vault are counted by one read of each maker, and those of a removed member do not count', async () => {
  const { db } = database
  const now = new Date('2026-06-01T12:00:00Z')
  const vaultId = id('vlt').parse(`vlt_${'0'.repeat(26)}`)
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_1', 'Acme', 'team', 'pro', now())`,
  )
  await db.run(sql`
    insert into accounts (id, email, created_at) select 'acc_' || n, n || '@example.com', now() from generate_series(1, 2000) as n`)
  await db.run(sql`
    insert into members (organisation_id, account_id, role, is_live, created_at, accepted_at)
    select 'org_1', 'acc_' || n, 'member', true, now(), now() from generate_series(1, 2000) as n`)
  await db.run(sql`
    insert into vaults (id, organisation_id, environment, metadata, created_at, event_hash, event_at, counted_as, expires_at)
    values (${vaultId}, 'org_1', 'live', '{}', now(), '', now(), 'active', '2999-01-01')`)
  await db.run(sql`
    insert into vault_tokens (id, token_hash, kind, organisation_id, environment, vault_id, expires_at, created_at, made_by)
    select 'vat_' || n, sha256(n::text::bytea), 'token', 'org_1', 'live', ${vaultId}, ${now}::timestamptz + n * interval '1 minute', ${now},
      case n % 3 when 0 then 'acc_removed' when 1 then 'acc_1' else 'acc_2' end
    from generate_series(1, 3000) as n`)
  await db.run(sql`analyze`)
  const counted = await db.tx(async (tx) => {
    const before = await rowsRead(tx, '^members$')
    const found = await countTokens(tx, { vaultId, now, max: 3_000 })
    return { ...found, members: (await rowsRead(tx, '^members$')) - before }
  })
  expect(counted).toEqual({ count: 2_000n, firstEnd: new Date(now.getTime() + 60_000), members: 2n })
})
