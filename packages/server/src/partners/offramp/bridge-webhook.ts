import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { z } from 'zod'
import type { SettingsReader } from '../settings.ts'
import type { PartnerMessageRead, PartnerMessages } from './port.ts'

/** Age above which a delivery is refused; Bridge sends it again with a new signature. */
export const bridgeWebhookMsMax = 600_000

export type BridgeDelivery =
  | { readonly ok: true; readonly eventId: string; readonly category: string; readonly objectId: string }
  | Extract<PartnerMessageRead, { readonly ok: false }>

const Event = z.object({
  event_id: z.string().min(1).max(128),
  event_category: z.string().min(1).max(64),
  event_object_id: z.string().min(1).max(128),
})

/** Bridge's messages about transfers name payouts; those about customers and accounts name none. */
export function createBridgeMessages(publicKeyPem: string): PartnerMessages {
  const key = createPublicKey(publicKeyPem)
  return {
    read({ headers, body }, now) {
      const delivery = readBridgeDelivery(key, { header: headers['x-webhook-signature'], body, now })
      if (!delivery.ok) return delivery
      return { ok: true, payoutId: delivery.category === 'transfer' ? delivery.objectId : undefined }
    },
  }
}

/** A PEM in one variable: its line feeds may be written as `\n`. */
export function readPublicKey({ env, faults }: SettingsReader): string | undefined {
  const name = 'BRIDGE_WEBHOOK_PUBLIC_KEY'
  const value = env[name] ?? ''
  if (value === '') return undefined
  const pem = value.replaceAll('\\n', '\n')
  if (isRsaKey(pem)) return pem
  faults.push({ name, fault: 'is not usable', how: 'set it to the PEM that Bridge shows for the webhook (RSA)' })
  return undefined
}

function isRsaKey(pem: string): boolean {
  try {
    return createPublicKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
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
