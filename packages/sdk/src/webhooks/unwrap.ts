import { verifyServiceWebhook, verifyStandardWebhook, type WebhookFault } from '@purser/protocol'
import { WebhookVerificationError } from './error.ts'
import { readWebhookEvent, type WebhookEvent } from './event.ts'
import { headerOf, type ReceivedHeaders } from './received-headers.ts'

export type UnwrapOptions = {
  /** How old, or how far ahead, a delivery may be; 300 when left out. */
  readonly toleranceSeconds?: number | undefined
  /** The time by which it is judged; the machine's own when left out. */
  readonly now?: Date | undefined
}

type Judged = { readonly body: Uint8Array; readonly secrets: readonly string[]; readonly options: UnwrapOptions }

/**
 * The event in a request that came to a webhook's address, once it is shown that the service sent it, and lately. `rawBody` is the
 * body before anything parsed it: a body that was parsed and written again is another text. `secret` is the webhook's (`whsec_…`), or
 * several of them while they change. Judged by the Standard Webhooks headers, and by `X-Service-Signature` where those are missing.
 *
 * Throws a `WebhookVerificationError` for whatever the request may hold, and a `RangeError` or `TypeError` for what only the
 * receiver's own program can have wrong: a malformed secret, a body that is not raw. The same event may come again, in time too:
 * keep the `eventId`. Source: decisions.md section 9.
 */
export function unwrap(
  rawBody: string | Uint8Array,
  headers: ReceivedHeaders,
  secret: string | readonly string[],
  options: UnwrapOptions = {},
): WebhookEvent {
  const judged = { body: bytesOf(rawBody), secrets: typeof secret === 'string' ? [secret] : secret, options }
  const fault = whyNotSent(headers, judged)
  if (fault !== undefined) throw new WebhookVerificationError(fault)
  const event = readWebhookEvent(jsonOf(judged.body))
  if ('faultAt' in event) throw new WebhookVerificationError('event-malformed', `See ${event.faultAt || 'the body'}.`)
  return event
}

/** A body as bytes. Throws a `TypeError` for one that something has parsed. */
export function bytesOf(rawBody: string | Uint8Array): Uint8Array {
  if (typeof rawBody === 'string') return new TextEncoder().encode(rawBody)
  if (rawBody instanceof Uint8Array) return rawBody
  throw new TypeError('A webhook is verified over its raw body, as text or bytes: give it before anything parses it.')
}

function whyNotSent(headers: ReceivedHeaders, { body, secrets, options }: Judged): WebhookFault | undefined {
  const { toleranceSeconds, now = new Date() } = options
  const moment = { nowSeconds: now.getTime() / 1000, toleranceSeconds }
  const signature = headerOf(headers, 'webhook-signature')
  if (signature === undefined) {
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
