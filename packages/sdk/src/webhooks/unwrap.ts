import { verifyServiceWebhook, verifyStandardWebhook, type WebhookFault } from '@purser/protocol'
import { mustKnow } from '../check.ts'
import { WebhookVerificationError } from './error.ts'
import { readWebhookEvent, type WebhookEvent } from './event.ts'
import { headerOf, type ReceivedHeaders } from './received-headers.ts'

export type UnwrapOptions = {
  /** Most seconds that the time of a delivery may be in the past or in the future. Default: 300. */
  readonly toleranceSeconds?: number | undefined
  /** The current time. Default: the local clock. */
  readonly now?: Date | undefined
}

type Judged = { readonly body: Uint8Array; readonly secrets: readonly string[]; readonly options: UnwrapOptions }

/**
 * Verifies that the service sent a webhook request recently, and returns its event. `rawBody` is the unparsed body: a
 * body that was parsed and serialized again is a different text. `secret` is the webhook's secret (`whsec_…`), or
 * several during a rotation. Uses the Standard Webhooks headers, or `X-Service-Signature` if those are absent.
 *
 * Throws a `WebhookVerificationError` for anything wrong with the request, and a `RangeError` or `TypeError` for
 * faults of the receiver's program: a malformed secret, or a body that is not raw. An event may be delivered more
 * than once, even within the time limit: store the `eventId`.
 *
 * @example
 * import { unwrap, WebhookVerificationError } from '@purser/sdk/webhooks'
 *
 * export async function receive(request: Request, secret: string): Promise<Response> {
 *   try {
 *     const event = unwrap(await request.text(), request.headers, secret)
 *     console.log(event.eventId, event.type)
 *     return new Response(null, { status: 204 })
 *   } catch (error) {
 *     if (error instanceof WebhookVerificationError) return new Response(error.reason, { status: 400 })
 *     throw error
 *   }
 * }
 */
export function unwrap(
  rawBody: string | Uint8Array,
  headers: ReceivedHeaders,
  secret: string | readonly string[],
  options: UnwrapOptions = {},
): WebhookEvent {
  mustKnow(options, { toleranceSeconds: true, now: true }, 'The fourth argument')
  const judged = { body: bytesOf(rawBody), secrets: typeof secret === 'string' ? [secret] : secret, options }
  const fault = whyNotSent(headers, judged)
  if (fault !== undefined) throw new WebhookVerificationError(fault)
  const event = readWebhookEvent(jsonOf(judged.body))
  if ('faultAt' in event) throw new WebhookVerificationError('event-malformed', `See ${event.faultAt || 'the body'}.`)
  return event
}

/** A body as bytes. Throws a `TypeError` for a parsed body. */
export function bytesOf(rawBody: string | Uint8Array): Uint8Array {
  if (typeof rawBody === 'string') return new TextEncoder().encode(rawBody)
  if (rawBody instanceof Uint8Array) return rawBody
  throw new TypeError('A webhook is verified over its raw body, as text or bytes. Pass it before anything parses it.')
}

function whyNotSent(headers: ReceivedHeaders, { body, secrets, options }: Judged): WebhookFault | undefined {
  const { toleranceSeconds, now = new Date() } = options
  const moment = { nowSeconds: now.getTime() / 1000, toleranceSeconds }
  const signature = headerOf(headers, 'webhook-signature')
  if (signature === undefined) {
    if (headerOf(headers, 'x-service-signature') === undefined)
      throw new WebhookVerificationError('header-missing', 'There is no webhook-signature.')
    const received = { timestamp: needed(headers, 'x-service-timestamp'), body }
    return verifyServiceWebhook({ ...received, signature: needed(headers, 'x-service-signature') }, secrets, moment)
  }
  const received = { id: needed(headers, 'webhook-id'), timestamp: needed(headers, 'webhook-timestamp') }
  return verifyStandardWebhook({ ...received, signature, body }, secrets, moment)
}

function needed(headers: ReceivedHeaders, name: string): string {
  const value = headerOf(headers, name)
  if (value === undefined) throw new WebhookVerificationError('header-missing', `There is no ${name}.`)
  return value
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new WebhookVerificationError('body-malformed')
  }
}
