import { signWebhook, type WebhookHeaders } from '@purser/protocol'
import { bytesOf } from './unwrap.ts'

export type TestHeadersOptions = {
  /** The time of sending to claim. Default: the local time. */
  readonly now?: Date | undefined
  /** The message id. Default: that of an invented event. */
  readonly eventId?: string | undefined
}

/**
 * Returns the headers with which the service would deliver this body, for tests of a receiver. `secret` is any
 * well-formed secret, or several as during a rotation. Throws a `RangeError` for a malformed secret or id.
 *
 * @example
 * import { testHeaders, unwrap } from '@purser/sdk/webhooks'
 *
 * const secret = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
 * const body = JSON.stringify({ eventId: 'evt_1', type: 'vault.sealed', payload: {} })
 * const headers = testHeaders(body, secret)
 * export const receive = () => unwrap(body, headers, secret)
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
