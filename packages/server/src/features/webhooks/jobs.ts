import type { Recurring } from '../../platform/job.ts'
import { deleteOldAttempts, deleteOldEvents, deleteOldWebhooks } from './event-store.ts'
import { oldestRow } from './history.ts'
import type { Deps } from './ports.ts'

const most = 1_000

/** Deletes events, deliveries and attempts after the days that they are kept. Running it again is harmless. */
export const expireEvents: Recurring<Deps> = {
  name: 'webhooks.sweep-events',
  everyMs: 600_000,
  run: async (ctx) => {
    const oldest = oldestRow(ctx)
    while ((await deleteOldEvents(ctx.db, oldest, most)) === most);
    await deleteOldAttempts(ctx.db, oldest)
    await deleteOldWebhooks(ctx.db, oldest)
  },
}
