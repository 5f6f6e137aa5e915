import type { JsonObject } from '@purser/protocol'
import { text } from '../../../platform/wire.ts'
import { routeOf } from '../new-payment.ts'
import type { FacilitatorBody } from './schema.ts'

/** The columns of a payment that describe the purchased resource. */
export interface PaidResource {
  readonly resource: string | null
  readonly route: string | null
  readonly description: string | null
}

const Url = text(2_048, 1)
const Description = text(1_024, 1)

/**
 * Returns the resource that the request names: in version 2 from the payment, where the payer copied it from the challenge, in
 * version 1 from the requirements. It is stored for the log only: a value that is not a URL or is too long is left out and
 * refuses no payment.
 */
export function resourceOf(body: FacilitatorBody): PaidResource {
  const { url, description } = describedResource(body)
  const resource = Url.safeParse(url).data ?? null
  const isWeb = resource !== null && URL.canParse(resource) && /^https?:$/.test(new URL(resource).protocol)
  return {
    resource,
    route: isWeb ? routeOf(resource) : null,
    description: Description.safeParse(description).data ?? null,
  }
}

/** Returns the members of the resource as sent, for either version. */
export function describedResource(body: FacilitatorBody): JsonObject {
  const { paymentPayload, paymentRequirements } = body
  if (paymentPayload.x402Version !== 1) return objectOf(paymentPayload.resource)
  const { resource: url, description, mimeType } = paymentRequirements
  return { url, description, mimeType }
}

/** Returns the payment's extensions as sent; empty if there are none. */
export function extensionsOf(body: FacilitatorBody): JsonObject {
  return objectOf(body.paymentPayload.extensions)
}

/** Returns the value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
