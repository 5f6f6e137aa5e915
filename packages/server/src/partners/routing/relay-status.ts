import { type Hex, isHex } from '@purser/protocol'
import type { RouteStatus } from './port.ts'

/** The statuses that are waited for (docs.relay.link, "Get Status", v3). */
const waiting = ['waiting', 'depositing', 'pending', 'submitted', 'delayed']

/**
 * A status of Relay's in our words. `failure` says that the payout failed and not what became of the money: it is followed until the refund
 * is seen, and never sent again. Some of their own tools write `refunded` for `refund`.
 */
export function relayStatusOf(said: {
  readonly status: string
  readonly txHashes?: readonly string[] | null | undefined
}): RouteStatus {
  const { status } = said
  const hash = hashIn(said.txHashes ?? [])
  if (status === 'success')
    return { state: 'completed', partnerStatus: status, ...(hash === undefined ? {} : { destinationTxHash: hash }) }
  const reason = 'The partner could not pay out on the other side.'
  if (status === 'refund' || status === 'refunded')
    return {
      state: 'failed',
      partnerStatus: status,
      reason,
      refund: 'done',
      ...(hash === undefined ? {} : { refundTxHash: hash }),
    }
  if (status === 'failure') return { state: 'failed', partnerStatus: status, reason, refund: 'pending' }
  return { state: 'pending', partnerStatus: status, ...(waiting.includes(status) ? {} : { isUnknown: true }) }
}

function hashIn(hashes: readonly string[]): Hex | undefined {
  const last = hashes.at(-1)
  return last !== undefined && isHex(last) && last.length === 66 ? last : undefined
}
