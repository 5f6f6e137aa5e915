import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fillTable, statement } from '../../../test/fill-table.ts'
import { readBy } from '../../../test/rows-read.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { listAwaitedBlocks, listAwaiting, listToFinalize } from './outcome-store.ts'

/** Transfers that wait for their blocks: 50 in each of 400 blocks. */
const last = 20_000
const now = new Date(Date.now() + 60_000)
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await fillTable(
    database.db,
    'transfers',
    {
      id: `'wtx_' || lpad(n::text, 26, '0')`,
      from_network: `'base'`,
      tx_hash: `'0x' || n`,
      settled_block: `1000 + n / 50`,
      settled_block_hash: `'0x' || n / 50`,
      finality_at: `now()`,
    },
    { last },
  )
  await database.db.run(statement('vacuum (analyze) transfers'))
})
afterAll(() => database?.drop())

const lists: readonly [string, number, number, (db: Queryable) => Promise<unknown>][] = [
  ['no transfer while no block is final', 0, 0, (db) => listToFinalize(db, 'base', { final: 999n, now, limit: 200 })],
  ['those of final blocks', 99, 150, (db) => listToFinalize(db, 'base', { final: 1_001n, now, limit: 200 })],
  [
    'the blocks that they wait for, each once',
    16,
    20,
    (db) => listAwaitedBlocks(db, 'base', { above: 999n, limit: 16 }),
  ],
  ['those of a block', 50, 60, (db) => listAwaiting(db, 'base', [{ number: 1_007n, hash: '0x7' }], 200)],
]

test.each(lists)('%s, of 20,000 that wait, are read by index', async (_, rows, scannedMax, list) => {
  for (const mode of ['force_generic_plan', 'force_custom_plan'] as const) {
    const read = await readBy(database.db, list, mode)
    expect(read.rows).toBe(rows)
    expect(Number(read.scanned)).toBeLessThanOrEqual(scannedMax)
  }
})
