import { afterAll, beforeAll, expect, test } from 'vitest'
import { countVaults } from '../src/features/vaults/counts.ts'
import { countUsage } from '../src/features/wallets/policy/count-usage.ts'
import { systemCtx } from '../src/platform/work/runner.ts'
import { fillTable } from './fill-table.ts'
import { aWorld, unreachableMain, type World } from './world.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' } })
})
afterAll(() => world?.stop())

test.each([
  ['policy_usage_changes', countUsage],
  ['vault_count_changes', countVaults],
] as const)(
  'a run adds up %s in full batches and then one more, however many are written meanwhile',
  async (table, { run }) => {
    const { deps } = world.server
    const { db } = deps
    await fillTable(db, table, {}, { last: 12_000 })
    const stopping = new AbortController()
    let batches = 0
    /** Writes a change before each batch, as busy tenants do. */
    const before = async () => {
      batches += 1
      if (batches === 6) stopping.abort()
      await fillTable(db, table, {}, { last: 1 })
    }
    const writing: typeof db = {
      ...db,
      run: async (statement) => before().then(() => db.run(statement)),
      one: async (row, statement) => before().then(() => db.one(row, statement)),
    }
    await run({ ...systemCtx(deps), db: writing, stopping: stopping.signal })
    expect(batches).toBe(2)
  },
)
