import type { Db } from '../../platform/db/db.ts'
import type { Sweep } from '../../platform/db/delete-expired.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import {
  deleteOldAttempts,
  deleteOldDeliveries,
  deleteOldEvents,
  deleteOldResends,
  deleteOldWebhooks,
} from './event-store.ts'
import { oldestRow } from './history.ts'
import type { Deps } from './ports.ts'

/** Deletes rows after the days that they are kept. Running it again is harmless. */
function expiry(name: string, deleteOld: (sweep: Sweep<Db>, oldest: Date) => Promise<void>): RecurringTask<Deps> {
  return { name: `webhooks.sweep-${name}`, everyMs: 600_000, run: (ctx) => deleteOld(ctx, oldestRow(ctx)) }
}

/** Each runs by itself, so that none stops the others when it fails. */
export const expiries: readonly RecurringTask<Deps>[] = [
  expiry('events', deleteOldEvents),
  expiry('attempts', deleteOldAttempts),
  expiry('deliveries', deleteOldDeliveries),
  expiry('resends', deleteOldResends),
  expiry('webhooks', deleteOldWebhooks),
]
