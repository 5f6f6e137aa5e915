import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { fillTable } from '../../../test/fill-table.ts'
import { aWorld, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { sessionRecurring } from './sessions.ts'

let world: World
beforeAll(async () => {
  world = await aWorld({ config: { role: 'api' } })
})
afterAll(() => world?.stop())

const Left = z.object({ payments: z.bigint(), sessions: z.bigint() })

test('a run visits all payments that ended unpaid, also if half of their sessions are revoked', async () => {
  const { db } = world.database
  const [sessionId, payments] = [`'ses_' || lpad(n::text, 26, '0')`, 1_100]
  const revokedAt = 'case when n % 2 = 0 then now() end'
  const vaultId = `'vlt_' || lpad(n::text, 26, '0')`
  await fillTable(db, 'sessions', { id: sessionId, vault_id: vaultId, revoked_at: revokedAt }, { last: payments })
  const status = `case when n % 3 = 0 then 'voided' else 'settlement_failed' end`
  await fillTable(
    db,
    'payments',
    { id: `'pay_' || lpad(n::text, 26, '0')`, session_id: sessionId, status, session_revoked: 'false' },
    { last: payments },
  )
  for (const work of sessionRecurring) await work.run(systemCtx(world.server.deps))
  const left = await db.one(
    Left,
    sql`select (select count(*) from payments where not session_revoked) as payments,
      (select count(*) from sessions where revoked_at is null) as sessions`,
  )
  expect(left).toEqual({ payments: 0n, sessions: 0n })
})
