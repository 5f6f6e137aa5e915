import { createHmac } from 'node:crypto'
import { signWebhook, standardSigningText, type WebhookHeaders, type WebhookMessage } from '@purser/protocol'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { openSecret } from '../secrets.ts'
import type { EndpointRow } from './queue-store.ts'

/**
 * Returns the headers that authenticate a delivery to its endpoint; undefined if a key cannot be opened: nothing is sent
 * unsigned.
 */
export type SignDelivery = (endpoint: EndpointRow, message: WebhookMessage) => Promise<WebhookHeaders | undefined>

export function createSignDelivery(deps: Pick<Deps, 'sealer' | 'log'> & ServiceSealPort): SignDelivery {
  // Kept while the endpoint's row is in use, about a second. A rotated secret arrives with the next read of the row.
  const opened = new WeakMap<EndpointRow, readonly string[]>()
  const secretsOf = (endpoint: EndpointRow): readonly string[] => {
    const known = opened.get(endpoint)
    if (known !== undefined) return known
    const of = { webhookId: endpoint.id, organisationId: endpoint.organisationId }
    const secrets = endpoint.secrets.map((sealed) => openSecret(deps, sealed, of))
    opened.set(endpoint, secrets)
    return secrets
  }
  return async (endpoint, message) => {
    try {
      const secrets = secretsOf(endpoint)
      const ed25519 = await deps.serviceSeal.sign(
        standardSigningText(message.id, String(message.timestamp), message.body),
      )
      return signWebhook(message, { secrets, signEd25519: () => ed25519, hmac })
    } catch (error) {
      deps.log.error({ err: error, webhookId: endpoint.id }, 'a webhook could not be signed')
      return undefined
    }
  }
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}
