import { createHmac } from 'node:crypto'
import { signWebhook, standardSigningText } from '@purser/protocol'
import { unixSeconds } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { bodyOf } from '../delivery/send.ts'
import type { Entry } from './store.ts'

/** Longest wait before a client connects again, as the stream tells it. */
const retryMs = 2_000

/** A comment: it keeps proxies from closing a quiet connection. */
export const heartbeat: Buffer = Buffer.from(':\n\n')

/** What a stream begins with: how soon to come back, and the place at which it starts, for a client that is told nothing before it is cut. */
export function openingOf(entryId: string): Buffer {
  return Buffer.from(`retry: ${retryMs}\nid: ${entryId}\n\n`)
}

/**
 * A delivery as the stream sends it: the headers and the raw body that a webhook would get at this moment, signed with the
 * listener's secret and the service's key.
 */
export async function frameOf(
  deps: Pick<Deps, 'clock' | 'serviceSeal'>,
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
  const headers = { 'content-type': 'application/json', 'user-agent': 'Purser-Webhooks/1.0', ...signed }
  return Buffer.from(`id: ${place.id}\ndata: ${JSON.stringify({ eventId, type, headers, body: text })}\n\n`)
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}
