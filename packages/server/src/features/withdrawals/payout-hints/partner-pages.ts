import type { PartnerMessages } from '../../../partners/offramp/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { PageRequest, PublicPage } from '../../../platform/http/server.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import type { Deps } from '../ports.ts'
import { deleteHintsBefore, upsertHint } from './store.ts'

/**
 * Receives the messages of off-ramp partners, at `/partners/<name>/webhooks`. A message is only a hint to read a payout: no state is taken
 * from it, so a repeated, delayed or reordered message changes nothing. The address of a partner without messages does not exist.
 */
export function partnerPages(deps: Pick<Deps, 'clock' | 'db' | 'log' | 'offRamps'>): readonly PublicPage[] {
  return Object.values(deps.offRamps).flatMap((partner) => {
    const { name, messages } = partner ?? {}
    if (name === undefined || messages === undefined) return []
    const respond: PublicPage['respond'] = (_params, request) => receive(deps, { name, messages }, request)
    return [{ path: `/partners/${name}/webhooks`, method: 'POST', bodyBytesMax: messageBytesMax, respond }]
  })
}

/** A message has one payout, at most before and after a change: a few kilobytes. */
const messageBytesMax = 65_536

const accepted = { status: 204, headers: {}, body: new Uint8Array() } as const

interface Sender {
  readonly name: string
  readonly messages: PartnerMessages
}

async function receive(
  { db, clock, log }: Pick<Deps, 'clock' | 'db' | 'log'>,
  { name: partner, messages }: Sender,
  message: PageRequest,
) {
  const now = clock.now()
  const read = messages.read(message, now)
  if (!read.ok) {
    log.warn({ partner, fault: read.fault }, 'a webhook message of a partner was refused')
    throw failPlatform('bad-request', { reason: read.fault })
  }
  if (read.payoutId !== undefined) await upsertHint(db, { partner, payoutId: read.payoutId }, now)
  return accepted
}

const keptMs = 7 * 86_400_000

/** Deletes hints after a week: payouts are polled without them too. Idempotent. */
export const deleteExpiredPayoutHints: RecurringTask<Deps> = {
  name: 'withdrawals.sweep-payout-hints',
  everyMs: 3_600_000,
  run: async (ctx) => {
    await deleteHintsBefore(ctx, instantOf(ctx.clock.now().getTime() - keptMs))
  },
}
