import { type Address, type Hex, sameAddress } from '@purser/protocol'
import type { RouteRequest, RouteStatus } from './port.ts'

/** LI.FI's `GET /status`, as far as it is relied on. */
export interface LifiStatus {
  readonly status: string
  readonly substatus?: string | null | undefined
  readonly receiving?: LifiReceiving | null | undefined
  /** Whom it paid, where it says. */
  readonly toAddress?: Address | undefined
}

type LifiRequest = Pick<RouteRequest, 'to' | 'toAddress'> & { readonly rawOutMin: bigint }

export interface LifiReceiving {
  readonly chainId?: number | undefined
  readonly txHash?: Hex | undefined
  readonly rawAmount?: bigint | undefined
  readonly token?: Address | undefined
}

/**
 * Of a failure: what it means, and whether LI.FI says that the money comes back. Those asked about have left their chain by a call that
 * went through, so that no cause, not even one that speaks of that call, means that nothing is owed.
 */
const failures = new Map<string, { readonly reason: string; readonly refund: 'unknown' | 'pending' }>([
  ['INSUFFICIENT_ALLOWANCE', { reason: 'The partner was not allowed to take the tokens.', refund: 'unknown' }],
  ['INSUFFICIENT_BALANCE', { reason: 'The wallet held too little when the call ran.', refund: 'unknown' }],
  ['OUT_OF_GAS', { reason: 'The call ran out of gas.', refund: 'unknown' }],
  ['EXPIRED', { reason: 'The quote had lapsed when the call ran.', refund: 'unknown' }],
  ['SLIPPAGE_EXCEEDED', { reason: 'The price moved more than was allowed.', refund: 'unknown' }],
  ['NOT_PROCESSABLE_REFUND_NEEDED', { reason: 'The other side could not be paid.', refund: 'pending' }],
  // Seen in the wild beside FAILED: the money is on its way back.
  ['REFUND_IN_PROGRESS', { reason: 'The other side could not be paid.', refund: 'pending' }],
])

const pendingSubstatuses = [
  'WAIT_SOURCE_CONFIRMATIONS',
  'WAIT_DESTINATION_TRANSACTION',
  'BRIDGE_NOT_AVAILABLE',
  'CHAIN_NOT_AVAILABLE',
  'UNKNOWN_ERROR',
  'INTENT_AWAITING_FUNDS',
  'INTENT_READY',
  'INTENT_EXECUTING',
  'INTENT_FAILED_RETRYABLE',
  'INTENT_SIMULATION_FAILURE',
]

/** Of these what follows is `DONE`/`REFUNDED` (help.li.fi, "Can a transfer result in stuck or lost funds?"). */
const refunding = ['REFUND_IN_PROGRESS', 'NOT_PROCESSABLE_REFUND_NEEDED']

/**
 * A status of LI.FI's in our words (docs.li.fi, "Checking the status of a transaction"). `DONE` alone is no success: with `REFUNDED` the
 * money came back. What nobody documented is waited for.
 */
export function lifiStatusOf(said: LifiStatus, request: LifiRequest): RouteStatus {
  const substatus = said.substatus ?? ''
  const partnerStatus = substatus === '' ? said.status : `${said.status}/${substatus}`
  const pending = (isKnown: boolean): RouteStatus => {
    return { state: 'pending', partnerStatus, ...(isKnown ? {} : { isUnknown: true }) }
  }
  if (said.status === 'DONE') return doneOf(said, partnerStatus, request) ?? pending(false)
  if (said.status === 'FAILED') {
    if (substatus === 'REFUNDED') return refundedOf(said, partnerStatus)
    return { state: 'failed', partnerStatus, ...(failures.get(substatus) ?? unexplained) }
  }
  if (said.status === 'PENDING' && refunding.includes(substatus))
    return { state: 'failed', partnerStatus, reason: 'The other side could not be paid.', refund: 'pending' }
  if (said.status === 'NOT_FOUND') return pending(true)
  // The hash is not the tool's: a fault of ours or theirs that somebody should see, and no proof of anything.
  if (said.status === 'INVALID') return pending(false)
  return pending(said.status === 'PENDING' && (substatus === '' || pendingSubstatuses.includes(substatus)))
}

const unexplained = { reason: 'The partner does not say why.', refund: 'unknown' } as const

/**
 * A delivery is of what was requested: on that chain, in that token, to that account, no less than the least. Of anything else it is none,
 * though LI.FI calls it done: it is waited for, and somebody looks. The one bridge that is taken delivers in one piece, so that `PARTIAL` is
 * no other.
 */
function doneOf(said: LifiStatus, partnerStatus: string, request: LifiRequest): RouteStatus | undefined {
  const { to, toAddress, rawOutMin } = request
  const { chainId, txHash, rawAmount, token } = said.receiving ?? {}
  if (said.substatus === 'REFUNDED') return refundedOf(said, partnerStatus)
  if (said.substatus !== 'COMPLETED' && said.substatus !== 'PARTIAL') return undefined
  if (chainId !== to.network.chainId || rawAmount === undefined || token === undefined) return undefined
  if (rawAmount < rawOutMin || rawAmount === 0n || !sameAddress(token, to.token.address)) return undefined
  if (said.toAddress !== undefined && !sameAddress(said.toAddress, toAddress)) return undefined
  const received = { chainId, token, rawAmount, isOther: false }
  return { state: 'completed', partnerStatus, received, ...(txHash === undefined ? {} : { destinationTxHash: txHash }) }
}

function refundedOf({ receiving }: LifiStatus, partnerStatus: string): RouteStatus {
  const reason = 'The other side could not be paid, and the money came back.'
  const hash = receiving?.txHash
  return {
    state: 'failed',
    partnerStatus,
    reason,
    refund: 'done',
    ...(hash === undefined ? {} : { refundTxHash: hash }),
  }
}
