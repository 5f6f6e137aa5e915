import { createHmac } from 'node:crypto'
import { signWebhook, standardSigningText } from '@purser/protocol'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import { unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { deliveryHeaders } from '../delivery/headers.ts'
import { bodyOf } from '../delivery/send.ts'
import type { Entry } from './store.ts'

/** Reconnection delay that the stream sends to its client. */
const retryMs = 2_000

/** A comment that keeps proxies from closing an idle connection. */
export const heartbeat: Buffer = Buffer.from(':\n\n')

/**
 * Returns the start of a stream: the reconnection delay and the entry after which it starts, for a client that is disconnected
 * before the first event.
 */
export function openingOf(entryId: string): Buffer {
  return Buffer.from(`retry: ${retryMs}\nid: ${entryId}\n\n`)
}

/**
 * Encodes a delivery for the stream: the headers and the raw body that a webhook would get now, signed with the listener's secret
 * and the service's key.
 */
export async function frameOf(
  deps: Pick<Deps, 'clock'> & ServiceSealPort,
  secret: string,
  entry: Entry,
): Promise<Buffer> {
  const { eventId, type, place } = entry
  const text = bodyOf(entry)
  const body = Buffer.from(text)
  const timestamp = unixSeconds(deps.clock.now())
  const ed25519 = await deps.serviceSeal.sign(standardSigningText(eventId, String(timestamp), body))
  const signers = { secrets: [secret], signEd25519: () => ed25519, hmac }
  const signed = signWebhook({ id: eventId, timestamp, body }, signers)
  const headers = { ...deliveryHeaders, ...signed }
  return Buffer.from(`id: ${place.id}\ndata: ${JSON.stringify({ eventId, type, headers, body: text })}\n\n`)
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}
