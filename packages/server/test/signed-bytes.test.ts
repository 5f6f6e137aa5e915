import { newTypeId } from '@purser/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { dropSignedBytes } from '../src/archive/signed-bytes.ts'
import type { Db } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { type Expressions, fillTable, statement } from './fill-table.ts'
import { readsCounted } from './rows-read.ts'

let database: TestDatabase
let db: Db

beforeEach(async () => {
  database = await freshDatabase()
  db = database.db
})
afterEach(() => database.drop())

const now = new Date('2026-11-20T12:00:00Z')
const day = 86_400_000
const old = `timestamptz '2026-11-01T00:00:00Z'`
const recent = `timestamptz '2026-11-19T00:00:00Z'`
const perStatementMax = 1_000

/** Ids of that prefix made then, numbered from 1. */
const idAt = (prefix: string, at = '2026-11-01T00:00:00Z'): string =>
  `'${newTypeId(prefix, Date.parse(at), new Uint8Array(10)).slice(0, -6)}' || lpad(n::text, 6, '0')`

const authorization = `jsonb_build_object('kind', 'eip3009', 'from', '0xaa', 'nonce', '0x01', 'signature', jsonb_build_object('kind', 'ecdsa'))`
const settled: Expressions = {
  id: idAt('pay'),
  claim_key: `'eip3009:eip155:84532:0xbb:0xaa:0x' || n`,
  challenge_id: 'null',
  payment_identifier: 'null',
  settlement: authorization,
  status: `'settled'`,
  settled_at: old,
  valid_before: old,
  check_at: 'null',
}
const relayed: Expressions = {
  created_at: old,
  network: `'base'`,
  purpose: `'payments'`,
  subject_id: idAt('pay'),
  state: `'settled'`,
  payload: authorization,
  check_at: 'null',
}
const sent: Expressions = {
  id: idAt('ctx'),
  network: `'base'`,
  nonce: 'n',
  status: `'final'`,
  final_at: old,
  data: `'\\xabcd'`,
}
const attempt: Expressions = {
  transaction_id: idAt('ctx'),
  sequence: '0',
  network: `'base'`,
  hash: `'0x' || n`,
  raw: `'\\xabcd'`,
}

const Count = z.object({ count: z.bigint() })
const countOf = async (rows: string): Promise<number> =>
  Number((await db.one(Count, statement(`select count(*) as count from ${rows}`))).count)
/** How many payments, relays, transactions and attempts still have their bytes. */
const signedRows = () =>
  Promise.all([
    countOf(`payments where settlement is not null`),
    countOf(`relays where payload <> '{}'`),
    countOf(`chain_transactions where data <> ''`),
    countOf(`transaction_attempts where raw <> ''`),
  ])

const fill = (table: string, own: Expressions, last = 1, first = 1) => fillTable(db, table, own, { first, last })

test('a backlog of payments, relays and transactions that ended long ago loses its signed bytes in statements of a bounded size', async () => {
  const backlog = 2_500
  await fill('payments', settled, backlog)
  await fill('relays', relayed, backlog)
  await fill('chain_transactions', sent, backlog)
  await fill('transaction_attempts', attempt, backlog)
  expect(await signedRows()).toEqual([backlog, backlog, backlog, backlog])
  const changed: bigint[] = []
  const noting: Db = {
    ...db,
    tx: (work, options) =>
      db.tx(async (tx) => {
        const before = await writtenBy(tx)
        const result = await work(tx)
        changed.push((await writtenBy(tx)) - before)
        return result
      }, options),
  }
  await dropSignedBytes({ db: noting }, now)
  expect(await signedRows()).toEqual([0, 0, 0, 0])
  // A transaction and its attempt, and the place of the walk.
  expect(Math.max(...changed.map(Number))).toBeLessThanOrEqual(2 * perStatementMax + 1)
  expect(await countOf("payments where claim_key is not null and status = 'settled'")).toBe(backlog)
})

test('a process that stops begins no further batch of a backlog', async () => {
  await fill('payments', settled, 2_500)
  const stopping = new AbortController()
  let batches = 0
  const counting: Db = {
    ...db,
    tx: (work, options) => {
      batches += 1
      stopping.abort()
      return db.tx(work, options)
    },
  }
  await dropSignedBytes({ db: counting, stopping: stopping.signal }, now)
  expect(batches).toBe(1)
  expect((await signedRows())[0]).toBeGreaterThan(0)
})

/** How many rows the transaction has changed. */
async function writtenBy(tx: Pick<Db, 'one'>): Promise<bigint> {
  const written = statement(
    `select coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint as count from pg_stat_xact_user_tables`,
  )
  return (await tx.one(Count, written)).count
}

const kept: readonly (readonly [why: string, table: string, base: Expressions, own: Expressions, ended: string])[] = [
  [
    'a payment that is settling',
    'payments',
    settled,
    { status: `'settling'`, settled_at: 'null' },
    `status = 'settled', settled_at = ${old}`,
  ],
  [
    'a payment whose settlement nobody requested',
    'payments',
    settled,
    { status: `'verified'`, settled_at: 'null' },
    `status = 'voided'`,
  ],
  ['a payment that settled yesterday', 'payments', settled, { settled_at: recent }, `settled_at = ${old}`],
  [
    'a voided payment whose signature is valid',
    'payments',
    settled,
    { status: `'voided'`, settled_at: 'null', valid_before: recent },
    `valid_before = ${old}`,
  ],
  [
    'a voided payment for which the chain is still read',
    'payments',
    settled,
    { status: `'voided'`, check_at: old },
    'check_at = null',
  ],
  ['a relay that waits', 'relays', relayed, { state: `'waiting'` }, `state = 'settled'`],
  [
    'a failed relay whose nonce is read once more',
    'relays',
    relayed,
    { state: `'failed'`, check_at: recent },
    'check_at = null',
  ],
  ['a relay in a transaction', 'relays', relayed, { state: `'included'` }, `state = 'settled'`],
  [
    'a transaction that is not mined',
    'chain_transactions',
    sent,
    { status: `'sent'`, final_at: 'null' },
    `status = 'final', final_at = ${old}`,
  ],
  ['a transaction that became final yesterday', 'chain_transactions', sent, { final_at: recent }, `final_at = ${old}`],
]

test.each(kept)('%s keeps its signed bytes until it has long ended', async (_, table, base, own, ended) => {
  await fill(table, { ...base, ...own })
  if (table === 'chain_transactions') await fill('transaction_attempts', attempt)
  const before = await signedRows()
  await dropSignedBytes({ db }, now)
  expect(await signedRows()).toEqual(before)
  await db.run(statement(`update ${table} set ${ended}`))
  await dropSignedBytes({ db }, new Date(now.getTime() + 2 * day))
  expect(await signedRows()).toEqual([0, 0, 0, 0])
  expect(await countOf('signed_bytes_kept')).toBe(0)
})

test('a payment keeps its signature while its relay is open, and a transaction its bytes while its transfer waits for its final block', async () => {
  await fill('payments', settled)
  await fill('relays', { ...relayed, check_at: recent })
  await fill('chain_transactions', sent)
  await fill('transaction_attempts', attempt)
  await fill('transfers', { settled_by: idAt('ctx'), finality_at: recent })
  await dropSignedBytes({ db }, now)
  expect(await signedRows()).toEqual([1, 1, 1, 1])
})

test('a relay of a transfer, which a reorganization may reopen, keeps its signature', async () => {
  await fill('relays', { ...relayed, purpose: `'transfers'` })
  await dropSignedBytes({ db }, now)
  expect(await signedRows()).toEqual([0, 1, 0, 0])
})

test('what a refund reads of a permit and of a transaction stays without their signatures', async () => {
  await fill('payments', {
    ...settled,
    claim_key: `'permit2:' || n`,
    settlement: `'{"kind": "permit2", "nonce": "7", "signature": "0xabcd", "permit2612": {"v": 27}}'`,
  })
  await fill(
    'payments',
    { ...settled, claim_key: `'tx:' || n`, settlement: `'{"kind": "tempo", "memo": "0x07", "raw": "0xabcd"}'` },
    2,
    2,
  )
  await dropSignedBytes({ db }, now)
  const Row = z.object({ settlement: z.unknown() })
  expect(
    (await db.many(Row, statement('select settlement from payments order by id'))).map(({ settlement }) => settlement),
  ).toEqual([
    { kind: 'permit2', nonce: '7', signature: '0x', permit2612: null },
    { kind: 'tempo', memo: '0x07', raw: '0x' },
  ])
})

test('a row that another process has locked is not waited for, and is swept a day later', async () => {
  await fill('payments', settled, 3)
  await db.tx(async (tx) => {
    await tx.run(statement(`select from payments order by id limit 1 for update`))
    await dropSignedBytes({ db }, now)
    expect(await countOf('payments where settlement is not null')).toBe(1)
  })
  await dropSignedBytes({ db }, new Date(now.getTime() + 2 * day))
  expect(await countOf('payments where settlement is not null')).toBe(0)
})

test('a sweep does not read the rows again that it has passed', async () => {
  await fill('payments', settled, 3_000)
  await fill('relays', relayed, 3_000)
  await fill('chain_transactions', sent, 3_000)
  await dropSignedBytes({ db }, now)
  const counted = readsCounted(db, '^(payments|relays|chain_transactions|transaction_attempts)')
  await dropSignedBytes(counted, now)
  // The planner reads both ends of an index.
  expect(counted.rows()).toBeLessThan(20n)
})
