import { test } from 'vitest'
import { z } from 'zod'
import { listEvents } from '../src/features/webhooks/event-store.ts'
import { deleteOldWebhooks } from '../src/features/webhooks/event-store.ts'
import { type Queryable, sql } from '../src/platform/db/db.ts'
import { freshDatabase } from './database.ts'
import { fillTable } from './fill-table.ts'
test('explain', async () => {
  const { db } = await freshDatabase()
  const now = new Date()
  await db.run({values: [], text: `create function id_at(prefix text, ms bigint) returns text language sql immutable as $$
      select prefix || '_' || string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> (5 * place)) & 31)::int + 1, 1), '' order by place desc)
        || repeat('0', 16) from generate_series(0, 9) as place $$`})
  await fillTable(db, 'events', { organisation_id: `'org_1'`, environment: `'test'`, created_at: `to_timestamp(${(now.getTime() - 30_000_000) / 1_000} + n)`, id: `id_at('evt', ${now.getTime() - 30_000_000} + n::bigint * 1000)`, type: `'payment.received'`, payload: `'{}'` }, { last: 12000 })
  await fillTable(db, 'webhook_deliveries', { id: `'d' || n`, webhook_id: `'kept' || n % 500`, event_id: `'e' || n` }, { last: 20_000 })
  await fillTable(db, 'webhook_deliveries', { id: `'c' || n`, webhook_id: `'gone'`, event_id: `'f' || n` }, { last: 1_500 })
  await fillTable(db, 'webhooks', { id: `'gone'`, deleted_at: `timestamptz '2026-01-01'` }, { last: 1 })
  const explain: Queryable = {
    ...db,
    run: async (s) => { console.log(s.text.slice(0,150)); const r = await db.many(z.any(), { text: 'explain analyze ' + s.text, values: s.values }); console.log(r.map((x) => Object.values(x)[0]).join('\n')); return 0 },
    many: async (_r, s) => { const r = await db.many(z.any(), { text: 'explain analyze ' + s.text, values: s.values }); console.log(r.map((x) => Object.values(x)[0]).join('\n')); return [] },
  }
  await listEvents(explain, { organisationId: 'org_1' as never, environment: 'test' }, { type: 'payment.received', oldest: new Date(now.getTime() - 30_000_000) }, { limit: 10, after: undefined })
  await deleteOldWebhooks({ ...explain, many: db.many }, now)
})
