import type { JsonObject } from '@purser/protocol'
import { text } from '../../../platform/wire.ts'
import { routeOf } from '../new-payment.ts'
import type { FacilitatorBody } from './schema.ts'

/** What a payment's row says of the thing that was bought. */
export interface PaidResource {
  readonly resource: string | null
  readonly route: string | null
  readonly description: string | null
}

const Url = text(2_048, 1)
const Description = text(1_024, 1)

/**
 * What the request says was bought: version 2 in the payment, where the payer copied it from the challenge, version 1 in the requirements. It
 * is a note for the log and binds nothing: what is no URL, or too long, is left out and refuses no payment.
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

/** The members of the resource as sent, for either version. */
export function describedResource(body: FacilitatorBody): JsonObject {
  const { paymentPayload, paymentRequirements } = body
  if (paymentPayload.x402Version !== 1) return objectOf(paymentPayload.resource)
  const { resource: url, description, mimeType } = paymentRequirements
  return { url, description, mimeType }
}

/** The payment's extensions as sent; empty when there are none. */
export function extensionsOf(body: FacilitatorBody): JsonObject {
  return objectOf(body.paymentPayload.extensions)
}

/** The value if it is an object, else one without members. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
