import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { takeNonces } from '../src/chain/lanes/store.ts'
import { sql } from '../src/platform/db/db.ts'
import { inLockOrder } from '../src/platform/db/lock-order.ts'
import { aDictionaryDatabase, type TestDatabase } from './database.ts'

const network = 'base-sepolia'
/** By code points `B` is before `a`; in a dictionary it is after it. */
const senders = [`0xB${'0'.repeat(39)}`, `0xa${'0'.repeat(39)}`] as const
const Sender = z.object({ sender: z.string() })

let database: TestDatabase

beforeAll(async () => {
  database = await aDictionaryDatabase()
})
afterAll(() => database?.drop())

test('accounts whose nonces are taken together are locked in code point order, whatever the collation of the database', async () => {
  const { db } = database
  const sorted = await db.many(
    Sender,
    sql`select sender from unnest(${senders}::text[]) as given (sender) order by sender`,
  )
  expect(
    sorted.map(({ sender }) => sender),
    'the database has a dictionary collation',
  ).toEqual(senders.toReversed())
  for (const sender of senders)
    await db.run(sql`insert into lanes (network, sender, next_nonce) values (${network}, ${sender}, 0)`)
  const isWaiting = async () => {
    const statement = sql`select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    return (await db.many(z.object({}), statement)).length > 0
  }
  let taking: Promise<unknown> | undefined
  await db.tx(async (tx) => {
    await tx.run(sql`select 1 from lanes where sender = ${senders[0]} for update`)
    const wanted = senders.toReversed().map((sender) => ({ lane: { network, sender }, count: 1 }))
    taking = db.tx((other) => takeNonces(other, wanted))
    await expect.poll(isWaiting, { interval: 20 }).toBe(true)
    const free = await db.many(Sender, sql`select sender from lanes for update skip locked`)
    expect(free, 'the later account is not locked yet').toEqual([{ sender: senders[1] }])
  })
  expect(await taking).toHaveLength(2)
})

test('groups are locked in the same order by the code and by SQL', async () => {
  const names = [
    ...senders,
    'ethereum',
    'eth-sepolia',
    'base',
    'base-sepolia',
    'org_1/test',
    'org_1/live',
    'org_10/live',
  ]
  const requested = sql`select name from unnest(${names}::text[]) as given (name) order by name collate "C"`
  const sorted = await database.db.many(z.object({ name: z.string() }), requested)
  expect(inLockOrder(new Map(names.map((name) => [name, name]))).map(([name]) => name)).toEqual(
    sorted.map(({ name }) => name),
  )
})
