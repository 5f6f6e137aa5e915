import { instantOf } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { Sweep } from '../../platform/db/delete-expired.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import {
  deleteOldAttempts,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteOldResends,
  deleteOldWebhooks,
  endOldDeliveries,
} from './event-store.ts'
import { oldestRow } from './history.ts'
import type { Deps } from './ports.ts'

/** Deletes rows after the days that they are kept. Running it again is harmless. */
function expiry(name: string, deleteOld: (sweep: Sweep<Db>, oldest: Date) => Promise<void>): RecurringTask<Deps> {
  return { name: `webhooks.sweep-${name}`, everyMs: 600_000, run: (ctx) => deleteOld(ctx, oldestRow(ctx)) }
}

/** Retries take less than six days, also where each response has the longest `Retry-After`. */
const pendingMsMax = 8 * 86_400_000

/** Ends deliveries that wait longer than retries take. Running it again is harmless. */
const endPending: RecurringTask<Deps> = {
  name: 'webhooks.end-old-deliveries',
  everyMs: 600_000,
  run: (ctx) => {
    const now = ctx.clock.now()
    return endOldDeliveries(ctx, { now, oldest: instantOf(now.getTime() - pendingMsMax) })
  },
}

/** Each runs by itself, so that none stops the others when it fails. */
export const expiries: readonly RecurringTask<Deps>[] = [
  endPending,
  expiry('events', deleteOldEvents),
  expiry('attempts', deleteOldAttempts),
  expiry('deliveries', deleteOldDeliveries),
  expiry('resends', deleteOldResends),
  expiry('webhooks', deleteOldWebhooks),
]
