import type { Recurring } from '../../platform/job.ts'
import { deleteOldAttempts, deleteOldEvents, deleteOldWebhooks } from './event-store.ts'
import { oldestKept } from './history.ts'

const most = 1_000

/** Forgets events after 30 days, and how they were delivered. Deleting what is deleted changes nothing. */
export const sweepEvents: Recurring = {
  name: 'webhooks.sweep-events',
  everyMs: 600_000,
  run: async (ctx) => {
    const oldest = oldestKept(ctx)
    while ((await deleteOldEvents(ctx.db, oldest, most)) === most);
    await deleteOldAttempts(ctx.db, oldest)
    await deleteOldWebhooks(ctx.db, oldest)
  },
}
