import type { Recurring } from '../../../platform/job.ts'
import { markQuarters, recountChanged, sealNext } from './seal-store.ts'

/**
 * Counts payments of past quarters of an hour, and again those quarters in which payments changed later. Two runs at once are harmless: both
 * lock the state, and the snapshot of the second one refuses to continue.
 */
export const rollUpPayments: Recurring = {
  name: 'payments.roll-up',
  everyMs: 60_000,
  run: async (ctx) => {
    await markQuarters(ctx.db)
    while (await sealNext(ctx.db));
    while (await recountChanged(ctx.db));
  },
}
