import type { Recurring } from '../../../platform/job.ts'
import type { Deps } from '../ports.ts'
import { addUpUsage } from './usage-store.ts'

/** Adds up what left wallets. Safe to run twice at once: each change is added by the transaction that deletes it. */
export const countUsage: Recurring<Deps> = {
  name: 'wallets.count-usage',
  everyMs: 10_000,
  async run({ db }) {
    while ((await addUpUsage(db)) > 0);
  },
}
