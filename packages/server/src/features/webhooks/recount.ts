import type { Recount } from '../plans/index.ts'
import { countWebhooks } from './store.ts'

/** Recounts a tenant's webhooks, to rebuild the counter. */
export const webhookRecount: Recount = { kind: 'webhooks', count: (db, tenant) => countWebhooks(db, tenant) }
