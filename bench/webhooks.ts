import type { Closing } from './closing.ts'
import { startWebhookGround } from './webhook-ground.ts'
import { benchWebhookLatency, fullLatency, type LatencyPlan, quickLatency } from './webhook-latency.ts'
import { benchWebhookRate, fullRate, quickRate, type RatePlan } from './webhook-rate.ts'

export interface WebhooksPlan {
  readonly latency: LatencyPlan
  readonly rate: RatePlan
}

export const fullWebhooks: WebhooksPlan = { latency: fullLatency, rate: fullRate }
export const quickWebhooks: WebhooksPlan = { latency: quickLatency, rate: quickRate }

/** Measures webhooks from the commit of an event to the record of its delivery. Returns how many were wrong and targets missed. */
export async function benchWebhooks(plan: WebhooksPlan, closing: Closing): Promise<number> {
  const ground = await startWebhookGround(closing)
  const late = await benchWebhookLatency(plan.latency, ground)
  return late + (await benchWebhookRate(plan.rate, ground))
}
