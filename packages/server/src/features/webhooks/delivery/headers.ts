import { apiVersion } from '../../../platform/api-version.ts'

/** What every delivery has beside its signatures, to a webhook or to a listener. */
export const deliveryHeaders = {
  'content-type': 'application/json',
  'user-agent': 'Purser-Webhooks/1.0',
  'x-service-version': apiVersion,
} as const
