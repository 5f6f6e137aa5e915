import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { readBy, spy } from '../../../test/statement-reads.ts'
import { type Sql, sql } from '../../platform/db/db.ts'
import { selectFairly, visitedBy } from './batch.ts'
import { endVisit, insertRelays, listDue, listForgotten, pickDue } from './queue-store.ts'
import { findBacklog, takeChecks } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 8 })
})
afterAll(() => database?.drop())

const network = 'base-sepolia'
const checksMax = 500
const bounds = {
  network,
  alone: false,
  purposes: ['payments'],
  turnsMax: 25,
  rowsOfSignerMax: 8,
  most: 100,
  timeLeftMs: 2_000,
}

/** About twice the most that a statement reads, whatever the number of organisations and relays. */
const blocksMax: Readonly<Record<string, number>> = {
  'idle poll': 80,
  backlog: 40,
  pick: 3_000,
  end: 5_000,
  checks: 8_000,
  forgotten: 14_000,
}
/** An update of a relay changes seven indexes. */
const blocksOfUpdateMax = 80

/**
 * 200,000 relays of 200 organisations, which have 100 signers each: half of the signers are due, four of ten back off after a failure, and
 * the authorizations of the others have expired, so that the chain is read for them.
 */
async function putMany(): Promise<void> {
  const { db } = database
  const signature = { kind: 'bytes', signature: '0x01' }
  const signed = {
    from: '0x01',
    to: '0x02',
    value: '1',
    validAfter: '0',
    validBefore: '1',
    nonce: '0x03',
    token: '0xaa',
  }
  const payload = JSON.stringify({ kind: 'eip3009', ...signed, signature, deployment: null })
  const organisation = sql`'org_' || lpad((n % 200)::text, 26, '0')`
  const signer = sql`'0x' || n / 2000`
  const isDue = sql`n / 2000 < 50`
  const hasExpired = sql`n / 2000 >= 90`
  for (let from = 0; from < 200_000; from += 20_000)
    await db.run(sql`
      insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
        attempts, next_attempt_at, check_at, created_at)
      select ${network}, 'payments', 'pay ' || n, ${organisation}, 'test', ${signer} || '-' || n % 200, '0xaa', '0x' || n, ${payload}::jsonb,
        now() + case when ${hasExpired} then interval '-1 minute' else interval '1 hour' end, false, 'waiting',
        case when ${isDue} then 0 else 3 end, now() + case when ${isDue} then interval '0' else interval '10 minutes' end,
        now() + case when ${hasExpired} then interval '0' else interval '1 hour' end, now() - interval '2 minutes'
      from generate_series(${from}::integer, ${from + 19_999}::integer) as n`)
  await db.run(sql`
    insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
    select network, alone, organisation_id, purpose, signer, min(next_attempt_at) from relays group by 1, 2, 3, 4, 5`)
  await db.run(sql`
    insert into relay_turns (network, alone, organisation_id, purpose, due_at)
    select network, alone, organisation_id, purpose, min(due_at) from relay_queues group by 1, 2, 3, 4`)
  await db.run({ text: 'analyze relays, relay_queues, relay_turns', values: [] })
}

/** The statements of an idle poll, a turn and the reads of the chain. */
async function statementsOfTurn(): Promise<readonly (readonly [name: string, statement: Sql])[]> {
  const { db } = database
  const statements: Sql[] = []
  const named: [string, Sql][] = []
  const note = async (name: string, work: Promise<unknown>): Promise<void> => {
    await work
    for (const statement of statements.splice(0)) named.push([name, statement])
  }
  const spied = { ...db, one: spy(statements, db.one), many: spy(statements, db.many) }
  await note('idle poll', listDue(spied, [network]))
  await note('backlog', findBacklog(spied, network, 100))
  const picking = pickDue(spied, bounds)
  await note('pick', picking)
  const turn = selectFairly({ network, alone: false }, await picking, bounds.most)
  const ending = db.tx((tx) => {
    const run = (statement: Sql) => tx.run(statement).finally(() => statements.push(statement))
    return endVisit({ ...tx, many: spy(statements, tx.many), run }, visitedBy(turn, turn.selected), bounds.timeLeftMs)
  })
  await note('end', ending)
  await note('checks', takeChecks(spied, network, { most: checksMax, cursors: new Map(), firstMs: 1, mostMs: 1 }))
  await note('forgotten', listForgotten(spied, network, 30_000))
  return named
}

test('a turn of a burst reads its signers by their keys, although the tables were empty when their statistics were made', async () => {
  const { db } = database
  const payload = sql`jsonb_build_object('kind', 'eip3009', 'from', '0x' || n, 'token', '0xaa', 'nonce', '0x' || n, 'value', '1', 'signature', jsonb_build_object('kind', 'ecdsa'))`
  const burst = sql`
    select 'burst ' || n as subject_id, ${network}::text as network, 'org_00000000000000000000000001' as organisation_id, 'test' as environment,
      ${payload} as payload, now() + interval '1 hour' as valid_before, now() as created_at from generate_series(1, 600) as n`
  await insertRelays(db, 'payments', burst)
  const turn = selectFairly({ network, alone: false }, await pickDue(db, bounds), bounds.most)
  const sent = turn.selected.map(({ relayId }) => relayId)
  await db.run(sql`update relays set state = 'included', next_attempt_at = null where id = any(${sent}::bigint[])`)
  const statements: Sql[] = []
  // Not run, only read below: the queues stay.
  const run = async (statement: Sql) => statements.push(statement)
  const visited = visitedBy(turn, turn.selected)
  await db.tx((tx) => endVisit({ ...tx, many: spy(statements, tx.many), run }, visited, bounds.timeLeftMs))
  const blocks = await Promise.all(statements.map(async (statement) => (await readBy(db, statement)).blocks))
  expect(blocks).toHaveLength(2)
  for (const count of blocks) expect(count).toBeLessThan(1_500)
  await db.run({ text: 'truncate relays, relay_queues, relay_turns', values: [] })
}, 60_000)

test('with 200,000 relays of 200 organisations waiting an idle poll and a turn read only what they need, by index', async () => {
  const { db } = database
  await putMany()
  const statements = await statementsOfTurn()
  const read = await Promise.all(
    statements.map(async ([name, statement]) => [name, await readBy(db, statement)] as const),
  )
  for (const [name, { blocks, plan }] of read) {
    expect(plan, name).not.toMatch(/Seq Scan on relay(s|_queues)/)
    expect(blocks, name).toBeLessThan(
      plan.startsWith('Update') ? checksMax * blocksOfUpdateMax : (blocksMax[name] ?? 0),
    )
  }
  expect(read.map(([name]) => name)).toEqual([
    ...['idle poll', 'backlog', 'pick', 'end', 'end', 'checks', 'checks', 'checks', 'forgotten'],
  ])

  // Every relay backs off: there is nothing to do.
  for (let part = 0; part < 8; part += 1)
    await db.run(sql`
      update relays set next_attempt_at = now() + interval '10 minutes', check_at = now() + interval '10 minutes'
      where id % 8 = ${part}`)
  await db.run(sql`update relay_queues set due_at = now() + interval '10 minutes'`)
  await db.run(sql`update relay_turns set due_at = now() + interval '10 minutes'`)
  await db.run({ text: 'vacuum analyze relays, relay_queues, relay_turns', values: [] })
  for (const [name, statement] of (await statementsOfTurn()).filter(([name]) => name !== 'forgotten')) {
    const { blocks } = await readBy(db, statement)
    expect(blocks, `${name}, where nothing is due`).toBeLessThan(20)
  }
}, 360_000)
