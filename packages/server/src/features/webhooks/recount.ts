import type { Recount } from '../plans/index.ts'
import { countingWebhooks } from './store.ts'

/** Recounts a tenant's webhooks, to rebuild the counter. */
export const webhookRecount: Recount = { kind: 'webhooks', counting: (tenant) => countingWebhooks(tenant) }
