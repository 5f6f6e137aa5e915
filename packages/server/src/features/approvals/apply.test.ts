import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { sql } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { createByOwner } from '../../platform/work/by-owner.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { freePlan } from '../plans/index.ts'
import { applyDecisions } from './decide.ts'
import type { Deps } from './ports.ts'

const SourceRow = z.object({ id: z.string(), token: z.string() })

// Movements that begin when a test says so. Their tokens name what their beginning reads.
let database: TestDatabase
let deps: Deps

beforeAll(async () => {
  database = await freshDatabase()
  deps = toyDeps(database.db) as Deps
})
afterAll(() => database?.drop())

/** Stores approved movements of one new organisation, which are due in this order; with an account, of one on the free plan. */
async function approved(count: number, token: string, dueAt: number, ofAccount?: string): Promise<readonly string[]> {
  const subjects = Array.from({ length: count }, () => newId('wtx', deps))
  const [organisationId, accountId, masterId] = [newId('org', deps), newId('acc', deps), newId('mwt', deps)]
  await database.db.tx(async (tx) => {
    // Only the approvals matter here, so that nothing that they name is made.
    await tx.run(sql`set local session_replication_role = replica`)
    if (ofAccount !== undefined)
      await tx.run(sql`
        insert into organisations (id, name, type, plan, quota_account_id, created_at)
        values (${organisationId}, 'Acme', 'team', ${freePlan}, ${ofAccount}, now())`)
    for (const [place, subjectId] of subjects.entries())
      await tx.run(sql`
        insert into movement_approvals (id, organisation_id, environment, master_wallet_id, wallet_id, kind, operation, subject_id, chain, token,
          decimals, raw_amount, recipient, to_chain, to_token, approval_above, account_id, status, created_at, expires_at, decided_at, apply_at)
        values (${newId('apr', deps)}, ${organisationId}, 'test', ${masterId}, ${masterId}, 'transfer', 'transfer', ${subjectId}, 'base', ${token},
          6, 1, '0x1', 'base', ${token}, '1', ${accountId}, 'granted', now(), now() + interval '1 day', now(),
          now() - interval '1 hour' + make_interval(secs => ${dueAt + place}))`)
  })
  return subjects
}

/** The recurring task, and what has begun. A movement whose token hangs never does. */
function aTask() {
  const limits = createByOwner({ slots: 16, atOnce: 2 })
  const begun: string[] = []
  const task = applyDecisions<Deps>({
    name: 'test',
    kinds: ['transfer'],
    slow: {
      limits: () => limits,
      async listSources(db, subjectIds) {
        const rows = await db.many(
          SourceRow,
          sql`select subject_id as id, token from movement_approvals where subject_id = any(${subjectIds}::text[])`,
        )
        return new Map(rows.map(({ id, token }) => [id, token]))
      },
    },
    begin: (_ctx, { subjectId, token }) => {
      begun.push(subjectId)
      return token === 'hangs' ? new Promise(() => undefined) : Promise.resolve()
    },
    end: () => Promise.resolve(),
  })
  return { begun, run: () => void task.run(systemCtx(deps), () => undefined) }
}

test('approved movements that wait for a partner delay neither those of another organisation nor those that read something else', async () => {
  const hanging = await approved(40, 'hangs', 0)
  const [other = ''] = await approved(1, 'hangs', 100)
  const [direct = ''] = await approved(1, 'answers', 200)
  const { begun, run } = aTask()
  run()
  await expect.poll(() => begun).toEqual(expect.arrayContaining([other, direct]))
  expect(begun.filter((subject) => hanging.includes(subject))).toHaveLength(2)
})

test('the free organisations of one account have the slots of one, so that as many hanging movements as an account can have delay nobody', async () => {
  const account = newId('acc', deps)
  const hanging: string[] = []
  for (let organisation = 0; organisation < 10; organisation++)
    hanging.push(...(await approved(2, 'hangs', organisation, account)))
  const others = [await approved(1, 'hangs', 100), await approved(1, 'hangs', 200)].flat()
  const { begun, run } = aTask()
  run()
  await expect.poll(() => begun).toEqual(expect.arrayContaining(others))
  expect(begun.filter((subject) => hanging.includes(subject))).toHaveLength(2)
})
