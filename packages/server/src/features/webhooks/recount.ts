import type { Recount } from '../plans/index.ts'
import { countWebhooks } from './store.ts'

/** How many webhooks a tenant has, for rebuilding the counter. */
export const webhookRecount: Recount = { kind: 'webhooks', count: (db, tenant) => countWebhooks(db, tenant) }
