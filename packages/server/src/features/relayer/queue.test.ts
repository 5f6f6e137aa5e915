import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { type BatchSelection, selectFairly, visitedBy } from './batch.ts'
import {
  endVisit,
  isNonceTaken,
  listDue,
  listForgotten,
  makeDue,
  pickDue,
  releaseRelays,
  setSingle,
} from './queue-store.ts'
import { relays } from './relays.ts'
import { lockWaiting, markIncluded, markLeft, markRelaysEnded, postpone, setToCheck, takeChecks } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 8 })
  await database.db.run(sql`insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values ('ctx_test', ${network}, '0x1', 1, '0x2', '\\x', 0, 1, 'relays', 'planned', now())`)
})
afterAll(() => database?.drop())
beforeEach(async () => {
  for (const table of ['relays', 'relay_queues', 'relay_turns'])
    await database.db.run({ text: `truncate ${table}`, values: [] })
})

const network = 'base-sepolia'
const org = (name: string) => `org_${name.padStart(26, '0')}` as const
const bounds = {
  network,
  alone: false,
  purposes: ['payments'],
  turnsMax: 25,
  rowsOfSignerMax: 8,
  most: 100,
  timeLeftMs: 2_000,
}

interface Given {
  readonly organisation: string
  readonly signer: string
  readonly count: number
  /** Seconds from now. */
  readonly endsIn?: number
  readonly kind?: 'ecdsa' | 'bytes'
}

/** Statements that enqueue relays of one signer, as a feature would. */
function rowsOf({ organisation, signer, count, endsIn = 3_600, kind = 'ecdsa' }: Given): Sql {
  const signature = kind === 'ecdsa' ? { kind, v: 27, r: '0x01', s: '0x02' } : { kind, signature: '0x01' }
  const payload = JSON.stringify({
    from: signer,
    to: '0x02',
    value: '1',
    validAfter: '0',
    validBefore: '1',
    signature,
    deployment: null,
  })
  return sql`
    select ${`${organisation} ${signer} `}::text || gen_random_uuid() as subject_id, ${network}::text as network, ${org(organisation)}::text as organisation_id,
      'test'::text as environment,
      ${payload}::jsonb || jsonb_build_object('kind', 'eip3009', 'token', '0xAA', 'nonce', '0x' || md5(${signer}::text || gen_random_uuid())) as payload,
      now() + ${endsIn}::integer * interval '1 second' as valid_before, now() as created_at
    from generate_series(1, ${count}::integer)`
}

const put = (given: Given): Promise<void> => relays.enqueue(database.db, 'payments', rowsOf(given))

async function pick(alone = false): Promise<BatchSelection> {
  return selectFairly({ network, alone }, await pickDue(database.db, { ...bounds, alone }), bounds.most)
}

/** One turn as the planner takes it, without a chain: who was served, by organisation and signer. */
async function takeTurn(): Promise<string[]> {
  const turn = await pick()
  const relayIds = idsOf(turn)
  return database.db.tx(async (tx) => {
    const locked = await lockWaiting(tx, relayIds)
    await tx.run(
      sql`update relays set state = 'failed', next_attempt_at = null, check_at = null where id = any(${relayIds}::bigint[])`,
    )
    await endVisit(tx, visitedBy(turn, turn.selected), bounds.timeLeftMs)
    return locked.map(({ subjectId }) => subjectId.split(' ').slice(0, 2).join(' '))
  })
}

const idsOf = ({ selected }: BatchSelection): readonly bigint[] => selected.map(({ relayId }) => relayId)

const queueCount = async () =>
  (
    await database.db.one(
      z.object({ count: z.bigint() }),
      sql`select (select count(*) from relay_queues) + (select count(*) from relay_turns) as count`,
    )
  ).count

const dueNow = async () => (await listDue(database.db, [network]))[0]

test('an organisation with a thousand signers waiting delays another’s payment by no turn', async () => {
  for (let from = 0; from < 1_000; from += 1)
    if (from % 100 === 0)
      await Promise.all(
        Array.from({ length: 100 }, (_, index) => put({ organisation: 'a', signer: `0xa${from + index}`, count: 1 })),
      )
  await put({ organisation: 'b', signer: '0xb', count: 3 })
  const served = await takeTurn()
  expect(served).toHaveLength(100)
  expect(served.filter((one) => one === 'b 0xb')).toHaveLength(3)
})

test('one payer with many signatures delays no other payer of its organisation by more than a turn', async () => {
  await put({ organisation: 'a', signer: '0xfull', count: 200 })
  await put({ organisation: 'a', signer: '0xother', count: 1 })
  expect(await takeTurn()).toContain('a 0xother')
})

test('organisations share a turn equally, and others use what one does not', async () => {
  for (const organisation of ['a', 'b'])
    for (let signer = 0; signer < 20; signer += 1)
      await put({ organisation, signer: `0x${organisation}${signer}`, count: 8 })
  await put({ organisation: 'c', signer: '0xc', count: 4 })
  const shares = Map.groupBy(await takeTurn(), (one) => one[0])
  expect([...shares].map(([name, { length }]) => [name, length]).toSorted()).toEqual([
    ['a', 48],
    ['b', 48],
    ['c', 4],
  ])
})

test('with more organisations than a turn holds each is served in the first or the second', async () => {
  const names = Array.from({ length: 40 }, (_, index) => `q${index}`)
  for (const organisation of names) await put({ organisation, signer: '0x1', count: 20 })
  const served = [...(await takeTurn()), ...(await takeTurn())]
  expect(new Set(served.map((one) => one.split(' ')[0]))).toEqual(new Set(names))
})

test('signatures close to expiry are not sent, block no others, and leave no queue behind', async () => {
  await put({ organisation: 'a', signer: '0xlate', count: 120, endsIn: 1 })
  await put({ organisation: 'a', signer: '0xgood', count: 1 })
  expect(await takeTurn()).toEqual(['a 0xgood'])
  expect(await takeTurn()).toEqual([])
  expect(await takeTurn()).toEqual([])
  expect(await queueCount()).toBe(0n)
  expect(await dueNow()).toMatchObject({ batch: false })
})

test('a queue in which everything was postponed is due again with its first relay, and at once with a new signature', async () => {
  await put({ organisation: 'a', signer: '0x1', count: 2 })
  const relayIds = idsOf(await pick())
  await postpone(database.db, relayIds, { firstMs: 60_000, mostMs: 60_000 })
  expect(await takeTurn()).toEqual([])
  expect(await takeTurn()).toEqual([])
  expect(await dueNow()).toMatchObject({ batch: false })
  expect(await queueCount()).toBe(2n)
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  expect(await dueNow()).toMatchObject({ batch: true })
  expect(await takeTurn()).toEqual(['a 0x1'])
})

/** A turn whose relays were sent, before its visit ends. */
async function sentTurn(): Promise<BatchSelection> {
  const turn = await pick()
  await database.db.run(sql`update relays set state = 'failed', next_attempt_at = null, check_at = null`)
  return turn
}

const end = (tx: Tx, turn: BatchSelection) => endVisit(tx, visitedBy(turn, turn.selected), bounds.timeLeftMs)

test('a signature that is stored while its queue is postponed or removed is not forgotten', async () => {
  const { db } = database
  for (const late of [false, true]) {
    await put({ organisation: 'a', signer: '0x1', count: 1 })
    const turn = await sentTurn()
    // Something of it is due an hour from now: then the queue is put off, and not removed.
    if (late) {
      await put({ organisation: 'a', signer: '0x1', count: 1 })
      await postpone(db, idsOf(await pick()), { firstMs: 3_600_000, mostMs: 3_600_000 })
    }
    // Stored and not committed while the visit ends: the rows are locked for key share, and stay due.
    await db.tx(async (tx) => {
      await relays.enqueue(tx, 'payments', rowsOf({ organisation: 'a', signer: '0x1', count: 1 }))
      await db.tx((other) => end(other, turn))
    })
    expect(await dueNow()).toMatchObject({ batch: true })
    expect(await takeTurn()).toEqual(['a 0x1'])
  }
})

test('a signature that is stored just after its queue was removed, and not yet committed, makes the queue anew', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  const turn = await sentTurn()
  const removing = Promise.withResolvers<void>()
  const storing = db.tx(async (tx) => {
    await end(tx, turn)
    const put = relays.enqueue(db, 'payments', rowsOf({ organisation: 'a', signer: '0x1', count: 1 }))
    removing.resolve()
    return { put }
  })
  await removing.promise
  await (await storing).put
  expect(await takeTurn()).toEqual(['a 0x1'])
})

test('an organisation that enqueues without a pause still takes its turn behind the others', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 30 })
  await put({ organisation: 'b', signer: '0x2', count: 1 })
  const first = selectFairly({ network, alone: false }, await pickDue(db, { ...bounds, turnsMax: 1 }), 8)
  expect(first.selected.map(({ queue }) => queue.signer)).toEqual(Array.from({ length: 8 }, () => '0x1'))
  await db.tx(async (tx) => {
    await relays.enqueue(tx, 'payments', rowsOf({ organisation: 'a', signer: '0x1', count: 1 }))
    await db.tx((other) => end(other, first))
  })
  const second = await pickDue(db, { ...bounds, turnsMax: 1 })
  expect(second.map(({ signer }) => signer)).toEqual(['0x2'])
})

test('many processes that store, serve and remove at once lose nothing', async () => {
  let served = 0
  let isStoring = true
  const take = async () => {
    while (isStoring) served += (await takeTurn()).length
  }
  const store = async (process: number) => {
    for (let round = 0; round < 40; round += 1)
      await put({ organisation: `q${round % 3}`, signer: `0x${(round + process) % 5}`, count: 2 })
  }
  const taking = take()
  await Promise.all([0, 1, 2].map(store))
  isStoring = false
  await taking
  for (let last = 1; last > 0; served += last) last = (await takeTurn()).length
  expect(served).toBe(240)
  for (let turns = 0; turns < 3; turns += 1) await takeTurn()
  expect(await queueCount()).toBe(0n)
}, 180_000)

test('the slow pass finds relays that wait in no queue', async () => {
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  await database.db.run(sql`delete from relay_queues`)
  await database.db.run(sql`update relays set next_attempt_at = now() - interval '1 minute'`)
  const forgotten = await listForgotten(database.db, network, 30_000)
  expect(forgotten).toHaveLength(1)
  await makeDue(database.db, forgotten)
  expect(await listForgotten(database.db, network, 30_000)).toEqual([])
  expect(await takeTurn()).toEqual(['a 0x1'])
})

test('a relay that must be sent alone leaves the shared queue, and a released one returns to its own queue', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  const relayIds = idsOf(await pick())
  await db.tx((tx) => setSingle(tx, relayIds))
  expect(idsOf(await pick())).toEqual([])
  expect(idsOf(await pick(true))).toEqual(relayIds)
  await setToCheck(db, relayIds, { firstMs: 0, mostMs: 0 })
  expect(idsOf(await pick(true))).toEqual([])
  const taken = await takeChecks(db, network, { most: 500, cursors: new Map(), firstMs: 1_000, mostMs: 2_000 })
  expect(taken.map(({ id }) => id)).toEqual(relayIds)
  await releaseRelays(db, relayIds)
  expect(idsOf(await pick(true))).toEqual(relayIds)
})

test('a contract’s signature is sent alone from the beginning', async () => {
  await put({ organisation: 'a', signer: '0x1', count: 1, kind: 'bytes' })
  expect(await dueNow()).toMatchObject({ batch: false, single: true })
})

test('a withdrawn relay is never sent, and one that waits again after a transaction without it is withdrawn too', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  const [waiting] = await db.tx(async (tx) => lockWaiting(tx, idsOf(await pick())))
  if (waiting === undefined) throw new Error('nothing waits')
  const { subjectId } = waiting
  expect(await db.tx((tx) => relays.withdraw(tx, 'payments', subjectId))).toBe(true)
  expect(await db.tx((tx) => relays.withdraw(tx, 'payments', subjectId))).toBe(false)
  expect(await takeTurn()).toEqual([])
  await db.run(sql`update relays set state = 'waiting', attempts = 1`)
  expect(await db.tx((tx) => relays.withdraw(tx, 'payments', subjectId))).toBe(true)
  expect(await takeTurn()).toEqual([])
})

test('a nonce that another relay has blocks no other relay, and is reported', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  const taken = sql`
    select 'sweep 1' as subject_id, network, organisation_id, environment, payload, valid_before, created_at from relays`
  const sources = [rowsOf({ organisation: 'b', signer: '0x2', count: 1 }), taken]
  const joined = (some: readonly Sql[]) => some.reduce((all, one) => sql`(${all}) union all (${one})`)
  const failures = await relays.enqueueEach(db, 'wallets.sweeps', sources, joined)
  expect(failures.map((failure) => failure !== undefined && isNonceTaken(failure))).toEqual([false, true])
  const Row = z.object({ row: z.string() })
  const rows = await db.many(Row, sql`select purpose || ' ' || signer as row from relays order by id`)
  expect(rows.map(({ row }) => row)).toEqual(['payments 0x1', 'wallets.sweeps 0x2'])
})

test('a relay that is withdrawn while it is being sent is sent once or not at all', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1 })
  const relayIds = idsOf(await pick())
  const [row] = await db.many(z.object({ subjectId: z.string() }), sql`select subject_id from relays`)
  if (row === undefined) throw new Error('nothing waits')
  const sending = db.tx(async (tx) => {
    const locked = await lockWaiting(tx, relayIds)
    const withdrawing = db.tx((other) => relays.withdraw(other, 'payments', row.subjectId))
    await markIncluded(
      tx,
      locked.map(({ id }) => id),
      'ctx_test',
    )
    return { sent: locked.length, withdrawing }
  })
  const { sent, withdrawing } = await sending
  expect([sent, await withdrawing]).toEqual([1, false])
})

test('a read of the chain that always fails backs off and blocks no others', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 600, endsIn: -1 })
  const take = () => takeChecks(db, network, { most: 500, cursors: new Map(), firstMs: 60_000, mostMs: 300_000 })
  const [first, second, third] = [await take(), await take(), await take()]
  expect([first.length, second.length, third.length]).toEqual([500, 100, 0])
  expect(new Set([...first, ...second].map(({ id }) => id)).size).toBe(600)
})

test('a relay in a transaction is not ended; one that a transaction left is sent only after the chain was read', async () => {
  await put({ organisation: 'a', signer: '0xcarried', count: 1 })
  const { db } = database
  const { id } = await db.one(z.object({ id: z.bigint() }), sql`select id from relays`)
  await db.tx((tx) => markIncluded(tx, [id], 'ctx_test'))
  expect((await db.tx((tx) => markRelaysEnded(tx, [id], 'failed'))).size).toBe(0)
  expect((await db.tx((tx) => markRelaysEnded(tx, [id], 'expired'))).size).toBe(0)

  await db.tx((tx) => markLeft(tx, [{ id, attempts: 1 }]))
  expect(await db.tx((tx) => lockWaiting(tx, [id]))).toEqual([])
  expect((await dueNow())?.check).toBe(true)
  await releaseRelays(db, [id])
  expect(await db.tx((tx) => lockWaiting(tx, [id]))).toHaveLength(1)
})

test('a thousand due reads of one organisation delay no read of another’s relay', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0x1', count: 1_000, endsIn: -1 })
  await db.run(sql`update relays set check_at = now() - interval '1 hour'`)
  await put({ organisation: 'b', signer: '0x2', count: 1, endsIn: -1 })
  const taken = await takeChecks(db, network, { most: 500, cursors: new Map(), firstMs: 60_000, mostMs: 300_000 })
  expect(taken).toHaveLength(500)
  expect(taken.slice(0, 2).map(({ organisationId }) => organisationId)).toContain(org('b'))
})

test('due reads of one payer in forty organisations delay no read of another payer', async () => {
  const { db } = database
  for (let organisation = 0; organisation < 40; organisation += 1)
    await put({ organisation: `a${organisation}`, signer: '0xeverywhere', count: 50, endsIn: -1 })
  await db.run(sql`update relays set check_at = now() - interval '1 hour'`)
  await put({ organisation: 'b', signer: '0xalone', count: 1, endsIn: -1 })
  const taken = await takeChecks(db, network, { most: 500, cursors: new Map(), firstMs: 60_000, mostMs: 300_000 })
  expect(taken).toHaveLength(500)
  expect(new Set(taken.map(({ organisationId }) => organisationId)).size).toBe(41)
  expect(taken.slice(0, 41).map(({ organisationId }) => organisationId)).toContain(org('b'))
})

test('payments of one payer in forty organisations delay no payment of another payer', async () => {
  for (let organisation = 0; organisation < 40; organisation += 1)
    await put({ organisation: `a${organisation}`, signer: '0xeverywhere', count: 20 })
  await put({ organisation: 'b', signer: '0xalone', count: 1 })
  const turns = [await takeTurn(), await takeTurn()]
  expect(turns.map(({ length }) => length)).toEqual([100, 100])
  expect(turns.flat()).toContain('b 0xalone')
})

test('a relay that failed in its last moments is read once more: the chain’s clock may be behind the database’s', async () => {
  const { db } = database
  await put({ organisation: 'a', signer: '0xa', count: 1, endsIn: -5 })
  const { id } = await db.one(z.object({ id: z.bigint() }), sql`select id from relays`)
  await db.tx((tx) => markRelaysEnded(tx, [id], 'failed'))
  const taken = await takeChecks(db, network, { most: 500, cursors: new Map(), firstMs: 60_000, mostMs: 300_000 })
  expect(taken.map(({ state, isPast }) => [state, isPast])).toEqual([['failed', true]])
})
