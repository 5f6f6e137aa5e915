import type { WebhookFault } from '@purser/protocol'

/**
 * The reason why a request is not accepted as a delivery of the service. `header-missing` and `header-repeated`: a
 * signing header is absent or occurs more than once. The protocol's faults: the sender does not have the secret, the
 * delivery is too old, or the body was changed (usually parsed and serialized again). `body-malformed` and
 * `event-malformed`: it is signed, but is not an event.
 */
export type WebhookRefusal = WebhookFault | 'header-missing' | 'header-repeated' | 'body-malformed' | 'event-malformed'

/** The default sentence of each refusal. */
const sentences: Readonly<Record<WebhookRefusal, string>> = {
  'header-missing': 'The request does not have the headers of a signed delivery.',
  'header-repeated': 'A signing header occurs more than once in the request.',
  'id-malformed': 'The message id does not have the format of the service.',
  'timestamp-malformed': 'The timestamp is not a whole number of seconds.',
  'timestamp-too-old': 'The delivery was signed too long ago, or the local clock is ahead.',
  'timestamp-too-new': 'The delivery was signed in the future, or the local clock is behind.',
  'signature-malformed': 'The signature header is empty, too long, or contains too many signatures.',
  'signature-mismatch': 'No signature matches this body. The secret is wrong, or the body is not the raw body.',
  'body-malformed': 'The body is signed but is not JSON.',
  'event-malformed': 'The body is signed but is not a valid event of its type.',
}

/**
 * The request is not an authentic delivery. Respond with 400 and do nothing else. Branch on `reason`; messages may
 * change.
 *
 * @example
 * import { unwrap, WebhookVerificationError } from '@purser/sdk/webhooks'
 *
 * export async function receive(request: Request, secret: string): Promise<Response> {
 *   try {
 *     const { type } = unwrap(await request.text(), request.headers, secret)
 *     return Response.json({ type })
 *   } catch (error) {
 *     if (error instanceof WebhookVerificationError) return new Response(error.reason, { status: 400 })
 *     throw error
 *   }
 * }
 */
export class WebhookVerificationError extends Error {
  readonly reason: WebhookRefusal
  /** The status that Express, Fastify and Koa send when a handler throws this error. */
  readonly status = 400

  constructor(reason: WebhookRefusal, detail = '') {
    super(detail === '' ? sentences[reason] : `${sentences[reason]} ${detail}`)
    this.name = 'WebhookVerificationError'
    this.reason = reason
  }
}
