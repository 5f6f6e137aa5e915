import { instantOf } from '../../../platform/clock.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { PageRequest, PublicPage } from '../../../platform/http/server.ts'
import type { Recurring } from '../../../platform/job.ts'
import type { Deps } from '../ports.ts'
import { deleteHintsBefore, upsertHint } from './store.ts'

/**
 * Receives Bridge's webhook. A message is only a hint to read a payout: no state is taken from it, so a repeated, delayed or reordered
 * message changes nothing. Without a configured webhook key the address does not exist.
 */
export function partnerPages(deps: Deps): readonly PublicPage[] {
  if (deps.bridgeWebhooks === undefined) return []
  const answer: PublicPage['answer'] = (_params, request) => receive(deps, request)
  return [{ path: '/partners/bridge/webhooks', method: 'POST', bodyBytesMax: messageBytesMax, answer }]
}

/** Bridge's messages have one resource, before and after a change: a few kilobytes. */
const messageBytesMax = 65_536

const accepted = { status: 204, headers: {}, body: new Uint8Array() } as const

async function receive({ db, clock, bridgeWebhooks, log }: Deps, { headers, body }: PageRequest) {
  const now = clock.now()
  const delivery = bridgeWebhooks?.read(headers['x-webhook-signature'], body, now)
  if (delivery === undefined) throw failPlatform('not-found')
  if (!delivery.ok) {
    log.warn({ partner: 'bridge', fault: delivery.fault }, 'a delivery was refused')
    throw failPlatform('bad-request', { reason: delivery.fault })
  }
  if (delivery.category === 'transfer') await upsertHint(db, { partner: 'bridge', payoutId: delivery.objectId }, now)
  return accepted
}

const keptMs = 7 * 86_400_000

/** Deletes hints after a week: payouts are polled without them too. Idempotent. */
export const deleteExpiredPayoutHints: Recurring<Deps> = {
  name: 'withdrawals.sweep-payout-hints',
  everyMs: 3_600_000,
  run: async ({ db, clock }) => {
    await deleteHintsBefore(db, instantOf(clock.now().getTime() - keptMs))
  },
}
