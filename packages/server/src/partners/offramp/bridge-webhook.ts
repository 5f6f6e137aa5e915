import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { z } from 'zod'

/** Age above which a delivery is refused; Bridge sends it again with a new signature. */
export const bridgeWebhookMsMax = 600_000

export type BridgeDelivery =
  | { readonly ok: true; readonly eventId: string; readonly category: string; readonly objectId: string }
  | { readonly ok: false; readonly fault: 'malformed' | 'too-old' | 'wrong-signature' }

const Event = z.object({
  event_id: z.string().min(1).max(128),
  event_category: z.string().min(1).max(64),
  event_object_id: z.string().min(1).max(128),
})

/** Verifies and parses Bridge's deliveries. */
export interface BridgeWebhooks {
  /** `header` is `X-Webhook-Signature`; `body` is the raw body. */
  read(header: string | undefined, body: Uint8Array, now: Date): BridgeDelivery
}

/** Messages of Bridge, as a dependency. */
export interface BridgeWebhooksPort {
  readonly bridgeWebhooks: BridgeWebhooks | undefined
}

export function createBridgeWebhooks(publicKeyPem: string): BridgeWebhooks {
  const key = createPublicKey(publicKeyPem)
  return { read: (header, body, now) => readBridgeDelivery(key, { header, body, now }) }
}

/**
 * Verifies a delivery's signature before parsing it: `t=<milliseconds>,v0=<base64>`, RSA with SHA-256 over the SHA-256 digest of `<t>.<body>`, so
 * that the hash is taken twice (apidocs.bridge.xyz, "Webhook Event Signature Verification"). A delivery from the future is refused like an old one.
 */
export function readBridgeDelivery(
  key: KeyObject,
  { header, body, now }: { readonly header: string | undefined; readonly body: Uint8Array; readonly now: Date },
): BridgeDelivery {
  const [, time, signature] = /^t=(\d{1,15}),v0=([A-Za-z0-9+/]{1,2048}={0,2})$/.exec(header ?? '') ?? []
  if (time === undefined || signature === undefined) return { ok: false, fault: 'malformed' }
  if (!isSigned(key, { time, signature, body })) return { ok: false, fault: 'wrong-signature' }
  if (Math.abs(now.getTime() - Number(time)) > bridgeWebhookMsMax) return { ok: false, fault: 'too-old' }
  const event = Event.safeParse(jsonOf(body))
  if (!event.success) return { ok: false, fault: 'malformed' }
  return {
    ok: true,
    eventId: event.data.event_id,
    category: event.data.event_category,
    objectId: event.data.event_object_id,
  }
}

/** Whether the key signed these bytes with that time. */
export function isSigned(
  key: KeyObject,
  { time, signature, body }: { readonly time: string; readonly signature: string; readonly body: Uint8Array },
): boolean {
  const digest = createHash('sha256').update(`${time}.`).update(body).digest()
  return verify('RSA-SHA256', digest, key, Buffer.from(signature, 'base64'))
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return undefined
  }
}
