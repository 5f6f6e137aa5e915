import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { readBy, spy } from '../../../test/statement-reads.ts'
import { type Sql, sql } from '../../platform/db/db.ts'
import { dealTurn, visitedBy } from './batch.ts'
import { endVisit, findBacklog, listDue, listForgotten, pickDue } from './queue-store.ts'
import { takeChecks } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 8 })
})
afterAll(() => database?.drop())

const network = 'base-sepolia'
const organisation = `org_${'a'.padStart(26, '0')}`
const bounds = {
  network,
  alone: false,
  purposes: ['payments'],
  turnsMax: 25,
  rowsOfSignerMax: 8,
  most: 100,
  timeLeftMs: 2_000,
}

test('with 200,000 relays waiting an idle poll and a turn read only what they need, by index', async () => {
  const { db } = database
  for (let from = 0; from < 200_000; from += 50_000)
    await db.run(sql`
      insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
        next_attempt_at, check_at, created_at)
      select ${network}, 'payments', 'pay ' || n, ${organisation}, 'test', '0x' || n / 10, '0xaa', '0x' || n, '{}', now() + interval '1 hour', false,
        'waiting', now(), now() + interval '1 hour', now() from generate_series(${from}::integer, ${from + 49_999}::integer) as n`)
  await db.run(sql`
    insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
    select distinct network, alone, organisation_id, purpose, signer, now() from relays`)
  await db.run(
    sql`insert into relay_turns (network, alone, organisation_id, purpose, due_at) values (${network}, false, ${organisation}, 'payments', now())`,
  )
  await db.run({ text: 'analyze relays, relay_queues, relay_turns', values: [] })

  const statements: Sql[] = []
  const spied = { ...db, one: spy(statements, db.one), many: spy(statements, db.many) }
  await listDue(spied, [network])
  await findBacklog(spied, network, 100)
  const turn = dealTurn({ network, alone: false }, await pickDue(spied, bounds), bounds.most)
  await db.tx((tx) => {
    const run = (statement: Sql) => tx.run(statement).finally(() => statements.push(statement))
    return endVisit({ ...tx, many: spy(statements, tx.many), run }, visitedBy(turn, turn.dealt), bounds.timeLeftMs)
  })
  await takeChecks(spied, network, { most: 500, starts: new Map(), firstMs: 1, mostMs: 1 })
  await listForgotten(spied, network, 30_000)
  for (const statement of statements) {
    const { blocks, plan } = await readBy(db, statement)
    expect(plan).not.toMatch(/Seq Scan on relay(s|_queues)/)
    expect(blocks).toBeLessThan(6_000)
  }
  expect(statements).toHaveLength(7)
  expect((await readBy(db, statements[0] ?? sql``)).blocks).toBeLessThan(20)
}, 360_000)
