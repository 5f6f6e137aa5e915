import { expect, test, vi } from 'vitest'
import { systemClock } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Db } from '../../../platform/db/db.ts'
import { createLog } from '../../../platform/log.ts'
import { createAttemptCounts } from './attempts.ts'

test('while the database does not answer, counts wait for one write, and the next one adds all of them', async () => {
  vi.useFakeTimers({ now: Date.parse('2026-11-23T00:00:00.000Z') })
  try {
    const answers: (() => void)[] = []
    const run = vi.fn<(statement: { readonly values: readonly unknown[] }) => Promise<void>>(
      () => new Promise((resolve) => answers.push(resolve)),
    )
    const counts = createAttemptCounts({
      db: { run } as unknown as Db,
      clock: systemClock,
      log: createLog({ level: 'silent' }),
    })
    const tenant = { organisationId: 'org_a', environment: 'test' } as Tenant
    for (let window = 0; window < 5; window++) {
      counts.add(tenant, { challenges: 1 })
      await vi.advanceTimersByTimeAsync(2_000)
    }
    expect(run).toHaveBeenCalledTimes(1)
    answers[0]?.()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(run).toHaveBeenCalledTimes(2)
    expect(run.mock.calls.map(([{ values }]) => values[3])).toEqual([[1], [4]])
  } finally {
    vi.useRealTimers()
  }
})
