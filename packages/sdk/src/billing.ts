import { call } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { ResponseBody } from './operations.ts'
import type { CallOptions, Send } from './transport.ts'

/** The organisation's plan and its limits. A limit of -1 means no limit. */
export type Plan = ResponseBody<operations['billing.plan']>
export type BillingUsage = ResponseBody<operations['billing.usage']>

/** The operations on the organisation's plan. */
export function billingOf(send: Send) {
  return {
    /** The usage of this month and the limits of the plan; -1 means no limit. */
    usage: (options?: CallOptions): Promise<BillingUsage> => call(send, 'GET', '/billing/usage', { ...options }),
    /** The plan with all its limits; -1 means no limit. */
    plan: (options?: CallOptions): Promise<Plan> => call(send, 'GET', '/billing/plan', { ...options }),
    /** Recounts the usage from the stored records. */
    rebuildCache: (options?: CallOptions): Promise<ResponseBody<operations['billing.rebuildCache']>> =>
      call(send, 'POST', '/billing/rebuild-cache', { ...options }),
  }
}
