import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fillTable, statement } from '../../../test/fill-table.ts'
import { type Queryable, type Sql, sql } from '../../platform/db/db.ts'
import { type ReservedQuestion, sumReserved } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
  const owner = `'0x' || n % 1000`
  const nonce = `decode(lpad(to_hex(n), 64, '0'), 'hex')`
  const same = { network: `'base'`, asset: `'USDC'`, raw_amount: '1', gas_limit: '0', data_bytes: '0' }
  const rows = { ...same, owner, subject_id: `'wtx_' || n`, authorization_nonce: nonce }
  await fillTable(database.db, 'reservations', rows, { last: 5_000 })
  await database.db.run(statement('vacuum (analyze) reservations'))
})
afterAll(() => database?.drop())

/** A question for each of 1,000 wallets, of whose five signatures four are used. */
async function questions(): Promise<ReservedQuestion[]> {
  const rows = await database.db.many(
    z.object({ owner: z.string(), seq: z.bigint() }),
    sql`select owner, seq from reservations order by seq`,
  )
  const same = { network: 'base', asset: 'USDC', block: 1n, nonce: 0n, allowed: [], maxFee: 1n, l1Fee: 0n }
  return [...Map.groupBy(rows, ({ owner }) => owner)].map(([owner, own]) => {
    const used = own.slice(0, 4).map(({ seq }) => seq)
    return { ...same, owner, used, except: undefined }
  })
}

interface Node {
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Join Filter'?: number
  readonly Plans?: readonly Node[]
}

/** Rows that the nodes of a plan returned, or read and left out. */
function rowsOf(node: Node): number {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)
  const own = (node['Actual Rows'] + removed) * node['Actual Loops']
  return (node.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), own)
}

test('used signatures of 1,000 wallets are read once, and not once for each wallet', async () => {
  const given = await questions()
  const sums = await sumReserved(database.db, given)
  expect([sums.length, new Set(sums.map(({ raw }) => raw))]).toEqual([1_000, new Set([1n])])
  const built: Sql[] = []
  const keeping: Queryable = {
    ...database.db,
    async many(_, one) {
      built.push(one)
      return []
    },
  }
  await sumReserved(keeping, given)
  const [{ text, values } = sql``] = built
  const [plan] = await database.db.many(z.looseObject({}), { text: `explain (analyze, format json) ${text}`, values })
  const [[{ Plan: root }]] = Object.values(plan ?? {}) as [[{ readonly Plan: Node }]]
  expect(rowsOf(root)).toBeLessThan(100_000)
})
