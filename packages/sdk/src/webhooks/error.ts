import type { WebhookFault } from '@purser/protocol'

/**
 * Why a request is not taken for a delivery of the service. `header-missing` and `header-repeated`: the signing headers are not
 * there, or stand more than once. Those of the protocol: who sent it does not hold the secret, or it is old, or the body was changed
 * on its way (parsed and written again, most often). `body-malformed` and `event-malformed`: it is signed, and yet no event.
 */
export type WebhookRefusal = WebhookFault | 'header-missing' | 'header-repeated' | 'body-malformed' | 'event-malformed'

/** The sentence of each refusal. */
const sentences: Readonly<Record<WebhookRefusal, string>> = {
  'header-missing': 'The request does not carry the headers of a signed delivery.',
  'header-repeated': 'A signing header stands in the request more than once.',
  'id-malformed': 'The id of the message is none that the service would send.',
  'timestamp-malformed': 'The timestamp is not a number of seconds in digits alone.',
  'timestamp-too-old': 'The delivery was signed too long ago, or the clock here is ahead.',
  'timestamp-too-new': 'The delivery was signed in the future, or the clock here is behind.',
  'signature-malformed': 'The signature header is empty, too long, or holds too many signatures.',
  'signature-mismatch':
    'No signature was made with the secret over this body: another secret, or not the body as it arrived.',
  'body-malformed': 'The body is signed and is not JSON.',
  'event-malformed': 'The body is signed and is not an event of its type.',
}

/** Answer 400 and do nothing else: what arrived may be from anybody. `reason` is what to branch on; messages may change. */
export class WebhookVerificationError extends Error {
  readonly reason: WebhookRefusal

  constructor(reason: WebhookRefusal, detail = '') {
    super(detail === '' ? sentences[reason] : `${sentences[reason]} ${detail}`)
    this.name = 'WebhookVerificationError'
    this.reason = reason
  }
}
