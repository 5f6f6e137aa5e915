import { signWebhook, type WebhookHeaders } from '@purser/protocol'
import { bytesOf } from './unwrap.ts'

export type TestHeadersOptions = {
  /** When it shall seem to have been sent; the machine's own time when left out. */
  readonly now?: Date | undefined
  /** The id of the message; that of a made-up event when left out. */
  readonly eventId?: string | undefined
}

/**
 * The headers with which the service would deliver this body, for a receiver's own tests. `secret` is any of the right form, or
 * several as while they change. Throws a `RangeError` for one that is not, and for an id that the service would not send.
 */
export function testHeaders(
  rawBody: string | Uint8Array,
  secret: string | readonly string[],
  options: TestHeadersOptions = {},
): WebhookHeaders {
  const { now = new Date(), eventId = 'evt_00000000000000000000000000' } = options
  const timestamp = Math.floor(now.getTime() / 1000)
  const secrets = typeof secret === 'string' ? [secret] : secret
  return signWebhook({ id: eventId, timestamp, body: bytesOf(rawBody) }, { secrets })
}
