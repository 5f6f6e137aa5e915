import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { ManualLine } from '../../../../test/manual-line.ts'
import { toyDeps } from '../../../../test/toy-deps.ts'
import { sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { EventStream } from './event-stream.ts'
import { Hub } from './hub.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database.drop())

const vaultOf = (n: number) => id('vlt').parse(`vlt_${String(n).padStart(26, '0')}`)

/** Makes a vault with so many events, each of which fills a read, and returns a stream of it. */
async function aFollowedVault(n: number, { owner, events, order }: { owner: string; events: number; order: string[] }) {
  const vaultId = vaultOf(n)
  const organisationId = id('org').parse(`org_${owner.padStart(26, '0')}`)
  await database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at) values (${organisationId}, 'Acme', 'team', 'pro', now()) on conflict do nothing`)
  await database.db.run(sql`
    insert into vaults (id, organisation_id, environment, metadata, created_at, event_count, event_hash, event_at, counted_as, expires_at)
    values (${vaultId}, ${organisationId}, 'test', '{}', now(), ${events}, '', now(), 'active', '2999-01-01')`)
  await database.db.run(sql`
    insert into vault_events (id, vault_id, organisation_id, environment, sequence, type, payload, size, created_at)
    select 'evt_' || lpad(${n} || lpad(sequence::text, 4, '0'), 26, '0'), ${vaultId}, ${organisationId}, 'test', sequence, 'step', '{}', 1048576, now()
    from generate_series(1, ${events}::int) as sequence`)
  const line = new ManualLine()
  const write = line.write.bind(line)
  line.write = (bytes) => {
    order.push(owner)
    write(bytes)
  }
  const right = { kind: 'guest', expiresAt: new Date('2999-01-01T00:00:00Z') } as const
  return new EventStream({ tenant: { organisationId, environment: 'test' }, owner, vaultId, right, after: 0 }, line)
}

test('vaults of one owner whose news fill each read leave every other read to the vault of another behind them', async () => {
  const hub = new Hub(toyDeps(database.db))
  onTestFinished(() => hub.stop())
  const order: string[] = []
  const streams = [
    await aFollowedVault(1, { owner: 'a', events: 8, order }),
    await aFollowedVault(2, { owner: 'a', events: 8, order }),
    await aFollowedVault(3, { owner: 'b', events: 4, order }),
  ]
  for (const stream of streams) hub.join(stream)
  await expect.poll(() => order.length).toBe(20)
  expect(order.slice(0, 8)).toEqual(['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b'])
})
