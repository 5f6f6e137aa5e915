import { type RecurringTask, repeatWhile } from '../../../platform/recurring-task.ts'
import type { Deps } from '../ports.ts'
import { addedMax, addUpUsage } from './usage-store.ts'

/** Adds up what left wallets. Safe to run twice at once: each change is added by the transaction that deletes it. */
export const countUsage: RecurringTask<Deps> = {
  name: 'wallets.count-usage',
  everyMs: 10_000,
  run: (ctx) => repeatWhile(ctx, async () => (await addUpUsage(ctx.db)) === addedMax),
}
