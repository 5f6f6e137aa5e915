import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { PageRequest, PublicPage } from '../../../platform/http/server.ts'
import { upsertHint } from './store.ts'

/**
 * Where Bridge tells of its transfers. What it says is only a hint that a payout is worth reading: no state is taken from a message, so
 * that one repeated, delayed or out of order changes nothing. There is no such address where no key of the webhook is configured.
 */
export function partnerPages(deps: Deps): readonly PublicPage[] {
  if (deps.bridgeWebhooks === undefined) return []
  return [{ path: '/partners/bridge/webhooks', method: 'POST', answer: (_params, request) => hear(deps, request) }]
}

const taken = { status: 204, headers: {}, body: new Uint8Array() } as const

async function hear({ db, clock, bridgeWebhooks, log }: Deps, { headers, body }: PageRequest) {
  const now = clock.now()
  const delivery = bridgeWebhooks?.read(headers['x-webhook-signature'], body, now)
  if (delivery === undefined) throw failPlatform('not-found')
  if (!delivery.ok) {
    log.warn({ partner: 'bridge', fault: delivery.fault }, 'a delivery was refused')
    throw failPlatform('bad-request', { reason: delivery.fault })
  }
  if (delivery.category === 'transfer') await upsertHint(db, { partner: 'bridge', payoutId: delivery.objectId }, now)
  return taken
}
