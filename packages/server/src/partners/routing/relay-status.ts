import { type Hex, isHex } from '@purser/protocol'
import type { RouteStatus } from './port.ts'

/** The pending statuses (docs.relay.link, "Get Status", v3). */
const waiting = ['waiting', 'depositing', 'pending', 'submitted', 'delayed']

/**
 * Maps a Relay status to ours. `failure` means that the payout failed, without saying where the money is; the route is followed until the refund is
 * observed, and never sent again. Some Relay tools write `refunded` for `refund`.
 */
export function relayStatusOf(answer: {
  readonly status: string
  readonly txHashes?: readonly string[] | null | undefined
}): RouteStatus {
  const { status } = answer
  const hash = hashIn(answer.txHashes ?? [])
  if (status === 'success')
    return { state: 'completed', partnerStatus: status, ...(hash === undefined ? {} : { destinationTxHash: hash }) }
  const reason = 'The partner could not pay out on the destination chain.'
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
