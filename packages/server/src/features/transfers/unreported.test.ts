import { afterAll, beforeAll, expect, test } from 'vitest'
import { fillTable } from '../../../test/fill-table.ts'
import { aWorld, unreachableMain, type World } from '../../../test/world.ts'
import { systemCtx } from '../../platform/work/runner.ts'
import { transferRecurring } from './tasks.ts'

let world: World

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain, config: { role: 'api' } })
})
afterAll(() => world?.stop())

test('ends that cannot be published delay those of no others, and are tried again when all others were tried', async () => {
  const transfers = 250
  const endedAt = `now() - interval '1 day' + (n / 60) * interval '1 second'`
  const rows = { id: `'wtx_' || lpad(n::text, 26, '0')`, ended_at: endedAt, purpose: `'transfer'` }
  await fillTable(world.database.db, 'transfers', rows, { last: transfers })
  const tried: unknown[] = []
  const { deps } = world.server
  const ctx = systemCtx({
    ...deps,
    db: { ...deps.db, tx: () => Promise.reject(new Error('it cannot be published')) },
    log: { ...deps.log, error: (fields: object) => tried.push('transferId' in fields && fields.transferId) },
  })
  const [task] = transferRecurring.filter(({ name }) => name === 'transfers.publish-unreported')
  if (task === undefined || !('run' in task)) throw new Error('there is no such task')
  await task.run(ctx)
  expect([tried.length, new Set(tried).size]).toEqual([transfers, transfers])
  await task.run(ctx)
  expect([tried.length, new Set(tried).size]).toEqual([2 * transfers, transfers])
})
